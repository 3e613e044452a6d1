// The thread's stack of saved-tensor hooks and the packed values they leave in nodes. Knows no node.
#include "python/saved_hooks.h"

#include "python/module.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

class PackedObject final : public PackedValue {
 public:
  PackedObject(Owned value, PyObject* unpack_hook) : value_(std::move(value)), unpack_(Owned::share(unpack_hook)) {}
  TensorRef unpack() override {
    Owned t(PyObject_CallOneArg(unpack_.get(), value_.get()));
    if (!t) host_error();
    if (!is_tensor(t.get()))
      type_error("saved_tensors_hooks: unpack_hook must return a Tensor, not ", Py_TYPE(t.get())->tp_name);
    return tensor_of(t.get());
  }

 private:
  Owned value_;
  Owned unpack_;
};

struct Pair {
  PyObject *pack, *unpack;
};
thread_local std::vector<Pair> stack;
thread_local std::string disabled;
thread_local bool is_disabled = false;

void update_mode() {
  if (stack.empty())
    modes::word &= ~std::uint32_t(modes::kSavedHooks);
  else
    modes::word |= modes::kSavedHooks;
}

PyObject* push(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyCallable_Check(args[0]) || !PyCallable_Check(args[1]))
      type_error("saved_tensors_hooks: takes two callables, pack_hook and unpack_hook");
    if (is_disabled) runtime_error(disabled);
    Py_INCREF(args[0]);
    Py_INCREF(args[1]);
    stack.push_back({args[0], args[1]});
    update_mode();
    Py_RETURN_NONE;
  });
}
PyObject* pop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (stack.empty()) runtime_error("saved_tensors_hooks: no hooks are active on this thread");
    const Pair p = stack.back();
    stack.pop_back();
    update_mode();
    Py_DECREF(p.pack);
    Py_DECREF(p.unpack);
    Py_RETURN_NONE;
  });
}
// Returns the message that was set before.
PyObject* set_disabled(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    PyObject* before = is_disabled ? PyUnicode_FromString(disabled.c_str()) : Owned::share(Py_None).release();
    if (message == Py_None) {
      is_disabled = false;
      return before;
    }
    Owned own(before);
    if (!PyUnicode_Check(message)) type_error("disable_saved_tensors_hooks: error_message must be str");
    if (!stack.empty())
      runtime_error("disable_saved_tensors_hooks: can't be entered while saved_tensors_hooks are active: ",
                    PyUnicode_AsUTF8(message));
    disabled = PyUnicode_AsUTF8(message);
    is_disabled = true;
    return own.release();
  });
}
PyObject* top(PyObject*, PyObject*) {
  if (stack.empty()) Py_RETURN_NONE;
  return PyTuple_Pack(2, stack.back().pack, stack.back().unpack);
}

PyMethodDef functions[] = {
    {"_push_saved_hooks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(push)), METH_FASTCALL,
     "_push_saved_hooks(pack_hook, unpack_hook)\n--\n\nMakes these the innermost hooks of the thread."},
    {"_pop_saved_hooks", pop, METH_NOARGS, "_pop_saved_hooks()\n--\n\nTakes the innermost hooks away."},
    {"_set_saved_hooks_disabled", set_disabled, METH_O,
     "_set_saved_hooks_disabled(message)\n--\n\nForbids hooks with a message, or allows them (None); returns what was "
     "set."},
    {"_top_saved_hooks", top, METH_NOARGS, "_top_saved_hooks()\n--\n\nThe innermost pair of hooks, or None."},
    {}};

}  // namespace

std::unique_ptr<PackedValue> pack_with(PyObject* pack_hook, PyObject* unpack_hook, const TensorRef& t) {
  Owned self = Owned::share(pack_hook), unpack = Owned::share(unpack_hook);
  Owned arg(wrap(t));
  if (!arg) host_error();
  const modes::GradMode off(false);  // what the hook computes is no part of the graph, and is not saved in turn
  const Storage& memory = batch::physical(t)->storage();
  const std::uint32_t version = memory.version();
  Owned packed(PyObject_CallOneArg(self.get(), arg.get()));
  if (!packed) host_error();
  if (memory.version() != version)
    runtime_error(
        "saved_tensors_hooks: A saved tensor pack hook is modifying its input in place, which the rest of the program "
        "sees too; let it change a clone");
  return std::make_unique<PackedObject>(std::move(packed), unpack.get());
}

void init_saved_hooks(PyObject* module) {
  pack_saved = [](const TensorRef& t) -> std::unique_ptr<PackedValue> {
    const Pair p = stack.back();
    return pack_with(p.pack, p.unpack, t);
  };
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
