// Python callables as hooks, and the handles that remove them. Knows no tensor method and no engine.
#include <algorithm>

#include "python/graph_objects.h"
#include "python/module.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

std::uint64_t next_hook_id = 0;

Owned tuple_of(const GraphGradVec& grads) {
  Owned t(wrap_list(std::span<const TensorRef>(grads.data(), grads.size())));
  if (!t) host_error();
  return t;
}

// Takes over what a hook returned in place of `grads`; null and None leave them as they are.
void replace(GraphGradVec& grads, PyObject* result, const char* what) {
  if (!result) host_error();
  Owned own(result);
  if (result == Py_None) return;
  if (!PyTuple_Check(result))
    type_error(what, ": expected tuple, but hook returned '", Py_TYPE(result)->tp_name,
               "'; return one value for each of ", grads.size(), " gradients, or None");
  const Py_ssize_t n = PyTuple_GET_SIZE(result);
  if (std::size_t(n) != grads.size())
    runtime_error(what, ": hook returned an incorrect number of values, got ", n, ", but expected ", grads.size());
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* g = PyTuple_GET_ITEM(result, i);
    if (g != Py_None && !is_tensor(g))
      type_error(what, ": value ", i, " returned by a hook must be a Tensor or None, not ", Py_TYPE(g)->tp_name);
    grads[std::size_t(i)] = g == Py_None ? TensorRef() : tensor_of(g);
  }
}

// The function saw one sample; so does its hook, while there are samples.
void check_levels(const PythonHook& hook) {
  const int innermost = std::bit_width(hook.levels);
  if (innermost > batch::depth() || batch::level(innermost).id != hook.level_id)
    runtime_error(
        "register_hook: hook '", hook.name(),
        "' was registered on a batched tensor, and the vmap that made it has ended, so there is no gradient of "
        "one sample to call it with; register it on a tensor outside vmap");
}

// A hook may remove itself while it runs.
Owned held(PyObject* callable) { return Owned::share(callable); }

}  // namespace

PythonHook::PythonHook(PyObject* c, HookKind k) : callable(c), kind(k), cell(Ref<HookCell>::adopt(new HookCell)) {
  Py_INCREF(callable);
  cell->hook = this;
  id = ++next_hook_id;
}
PythonHook::~PythonHook() {
  cell->hook = nullptr;
  Py_XDECREF(callable);
}

TensorRef PythonHook::on_gradient(const TensorRef& grad) {
  Owned f = held(callable);
  if (!f) return {};
  if (TP_UNLIKELY(levels)) check_levels(*this);
  Owned g(wrap(batch::cover(grad, levels)));
  if (!g) host_error();
  Owned r(PyObject_CallOneArg(f.get(), g.get()));
  if (!r) host_error();
  if (r.get() == Py_None) return {};
  if (!is_tensor(r.get()))
    type_error("register_hook: hook '", name(), "' must return a Tensor or None, not ", Py_TYPE(r.get())->tp_name);
  return batch::peel(tensor_of(r.get()), levels);
}

void PythonHook::on_outputs(GraphGradVec& grads) {
  Owned f = held(callable);
  if (!f) return;
  Owned outs = tuple_of(grads);
  replace(grads, PyObject_CallOneArg(f.get(), outs.get()), "register_prehook");
}

void PythonHook::on_inputs(GraphGradVec& grad_inputs, const GraphGradVec& grad_outputs) {
  Owned f = held(callable);
  if (!f) return;
  Owned ins = tuple_of(grad_inputs), outs = tuple_of(grad_outputs);
  replace(grad_inputs, PyObject_CallFunctionObjArgs(f.get(), ins.get(), outs.get(), nullptr), "register_hook");
}

void PythonHook::on_accumulated(const TensorRef& leaf) {
  Owned f = held(callable);
  if (!f) return;
  Owned t(wrap(leaf));
  if (!t) host_error();
  Owned r(PyObject_CallOneArg(f.get(), t.get()));
  if (!r) host_error();
  if (r.get() != Py_None)
    runtime_error("register_post_accumulate_grad_hook: hooks should return None, '", name(), "' returned ",
                  Py_TYPE(r.get())->tp_name);
}

std::string PythonHook::name() const {
  std::string text = "hook";
  if (!callable) return text;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Owned n(PyObject_GetAttrString(callable, "__name__"));
  if (n && PyUnicode_Check(n.get()))
    text = PyUnicode_AsUTF8(n.get());
  else
    text = Py_TYPE(callable)->tp_name;
  PyErr_Restore(type, value, trace);
  return text;
}

PyObject* hook_callable(Hook* h) {
  auto* p = dynamic_cast<PythonHook*>(h);
  return p ? p->callable : nullptr;
}

// ---- handles ---------------------------------------------------------------------------------------------------------
namespace {

struct HandleObject {
  PyObject_HEAD
  HookCell* cell;      // owned; null: nothing to remove
  PyObject* callback;  // called once by remove(), for handles made in Python
  std::uint64_t id;
  PyObject* weak;
};
PyTypeObject HandleType = {};
HandleObject* as_handle(PyObject* o) { return reinterpret_cast<HandleObject*>(o); }

PyObject* handle_remove(PyObject* self, PyObject*) {
  HandleObject* h = as_handle(self);
  if (h->cell && h->cell->hook) Py_CLEAR(h->cell->hook->callable);
  if (PyObject* f = h->callback) {
    h->callback = nullptr;
    PyObject* r = PyObject_CallNoArgs(f);
    Py_DECREF(f);
    return r;
  }
  Py_RETURN_NONE;
}
PyObject* handle_enter(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}
PyObject* handle_exit(PyObject* self, PyObject*) { return handle_remove(self, nullptr); }
// A pickled handle comes back as one that removes nothing: the hook did not travel with it.
PyObject* handle_reduce(PyObject*, PyObject*) { return Py_BuildValue("(O())", &HandleType); }
PyObject* handle_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"callback", nullptr};
  PyObject* callback = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:RemovableHandle", const_cast<char**>(names), &callback))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  HandleObject* h = as_handle(self);
  h->id = ++next_hook_id;
  if (callback != Py_None) h->callback = Owned::share(callback).release();
  return self;
}
void handle_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  HandleObject* h = as_handle(self);
  if (h->weak) PyObject_ClearWeakRefs(self);
  if (h->cell) HookCell::release(h->cell);
  Py_CLEAR(h->callback);
  type->tp_free(self);
}
int handle_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_handle(self)->callback);
  return 0;
}
int handle_clear(PyObject* self) {
  Py_CLEAR(as_handle(self)->callback);
  return 0;
}
PyObject* handle_id(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(as_handle(self)->id); }
PyObject* handle_next_id(PyObject*, void*) { return PyLong_FromUnsignedLongLong(next_hook_id + 1); }

PyMethodDef handle_methods[] = {{"remove", handle_remove, METH_NOARGS,
                                 "remove($self, /)\n--\n\nTakes the hook away; calling it again does nothing."},
                                {"__enter__", handle_enter, METH_NOARGS, nullptr},
                                {"__exit__", handle_exit, METH_VARARGS, nullptr},
                                {"__reduce__", handle_reduce, METH_NOARGS, nullptr},
                                {}};
PyGetSetDef handle_attributes[] = {{"id", handle_id, nullptr, "Number of the hook.", nullptr},
                                   {"next_id", handle_next_id, nullptr, "Number the next hook will get.", nullptr},
                                   {}};

void purge(std::vector<HookRef>& list) {
  std::erase_if(list, [](const HookRef& h) { return dynamic_cast<PythonHook*>(h.get()) && !hook_callable(h.get()); });
}

}  // namespace

PyObject* add_hook(Node& node, HookKind kind, std::uint32_t output_nr, PyObject* callable, const TensorImpl* batched) {
  if (!PyCallable_Check(callable))
    type_error("register_hook: the hook must be callable, not ", Py_TYPE(callable)->tp_name);
  PyObject* self = HandleType.tp_alloc(&HandleType, 0);
  if (!self) host_error();
  auto* hook = new PythonHook(callable, kind);
  HookRef ref = HookRef::adopt(hook);
  if (batched) {
    hook->levels = batched->meta()->levels;
    hook->level_id = batched->meta()->level_id;
  }
  HandleObject* h = as_handle(self);
  h->id = hook->id;
  h->cell = Ref<HookCell>(hook->cell).detach();
  NodeMeta& meta = node.ensure_meta();
  // Removed hooks leave their list when the next one comes: a running pass may be walking it now.
  switch (kind) {
    case HookKind::Tensor: {
      std::vector<TensorHook>& list = meta.tensor_hooks;
      if (!Engine::running())
        std::erase_if(list, [](const TensorHook& t) {
          return dynamic_cast<PythonHook*>(t.hook.get()) && !hook_callable(t.hook.get());
        });
      list.push_back({output_nr, std::move(ref)});
      break;
    }
    case HookKind::Pre:
      if (!Engine::running()) purge(meta.pre_hooks);
      meta.pre_hooks.push_back(std::move(ref));
      break;
    case HookKind::Post:
      if (!Engine::running()) purge(meta.post_hooks);
      meta.post_hooks.push_back(std::move(ref));
      break;
    case HookKind::Accumulated:
      if (!Engine::running()) purge(meta.accumulated_hooks);
      meta.accumulated_hooks.push_back(std::move(ref));
      break;
  }
  return self;
}

void init_hooks(PyObject* module) {
  HandleType.tp_name = "tensorplay.utils.hooks.RemovableHandle";
  HandleType.tp_basicsize = sizeof(HandleObject);
  HandleType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  HandleType.tp_doc =
      "RemovableHandle(callback=None)\n--\n\nTakes a hook away again: by remove(), or at the end of a with block.";
  HandleType.tp_weaklistoffset = offsetof(HandleObject, weak);
  HandleType.tp_new = handle_new;
  HandleType.tp_dealloc = handle_dealloc;
  HandleType.tp_traverse = handle_traverse;
  HandleType.tp_clear = handle_clear;
  HandleType.tp_free = PyObject_GC_Del;
  HandleType.tp_methods = handle_methods;
  HandleType.tp_getset = handle_attributes;
  ready(HandleType);
  add_object(module, "RemovableHandle", reinterpret_cast<PyObject*>(&HandleType));
}

}  // namespace tp::python
