// Outputs of a Function: dirty inputs, inputs and views returned, saved values, tangents. Forward has run already.
#include "python/function_outputs.h"

#include "autograd/dual_level.h"
#include "ops/wiring.h"
#include "python/tensor_type.h"
#include "transforms/basis.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

constexpr OpSchema kSchema{"mark_dirty", "mark_dirty(*args)"};

bool contains(PyObject* tuple, PyObject* o) {
  if (!tuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  return false;
}

class Finish {
 public:
  Finish(FunctionObject* f, PyObject* cls, const Ref<PythonNode>& node, PyObject* const* args, std::size_t n)
      : f_(f), cls_(cls), node_(node), args_(args), n_(n) {}

  std::string name() const { return reinterpret_cast<PyTypeObject*>(cls_)->tp_name; }

  void take(PyObject* output) {
    tuple_ = PyTuple_Check(output);
    single_ = output;
    items_ = tuple_ ? &PyTuple_GET_ITEM(output, 0) : &single_;
    count_ = tuple_ ? std::size_t(PyTuple_GET_SIZE(output)) : 1;
  }

  // An undeclared in-place change would make the gradient wrong without a word.
  void check_undeclared(const InputVersions& versions) {
    for (std::size_t i = 0; i < n_; ++i) {
      if (!is_tensor(args_[i]) || contains(f_->dirty, args_[i])) continue;
      const TensorRef& t = tensor_of(args_[i]);
      if (TP_LIKELY(t->storage().version() == versions[i])) continue;
      if (!t->requires_grad() && !contains(f_->to_save, args_[i])) continue;
      if (shares_dirty_memory(t)) continue;
      runtime_error(name(), ": forward changed argument ", i,
                    " in place without ctx.mark_dirty; declare it, or change a clone");
    }
  }

  void check_dirty() {
    if (TP_LIKELY(!f_->dirty)) return;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(f_->dirty); ++k) {
      PyObject* d = PyTuple_GET_ITEM(f_->dirty, k);
      if (!is_tensor(d)) runtime_error(name(), ": mark_dirty takes tensors, argument ", k, " is ", Py_TYPE(d)->tp_name);
      if (input_index(d) < 0) {
        if (tensor_of(d)->is_view() && node_)
          runtime_error(name(), ": a view that is not an input was marked dirty; only inputs of forward can be");
        if (PyErr_WarnEx(PyExc_UserWarning,
                         "mark_dirty: a tensor that is not an input was marked dirty; only inputs of forward need it",
                         1) < 0)
          host_error();
      }
      bool returned = false;
      for (std::size_t i = 0; i < count_; ++i) returned = returned || items_[i] == d;
      if (!returned)
        runtime_error(name(),
                      ": Some elements marked as dirty during the forward method were not returned as output. The "
                      "inputs that are modified inplace must all be outputs of the Function.");
    }
  }

  void check_non_differentiable() const {
    if (TP_LIKELY(!f_->non_differentiable)) return;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(f_->non_differentiable); ++k) {
      PyObject* o = PyTuple_GET_ITEM(f_->non_differentiable, k);
      if (!is_tensor(o))
        runtime_error(name(), ": mark_non_differentiable takes tensors, argument ", k, " is ", Py_TYPE(o)->tp_name);
    }
  }

  void attach() {
    results_.resize(count_);
    if (node_) {
      node_->set_num_outputs(std::uint32_t(count_));
      node_->outputs.resize(count_);
    }
    for (std::size_t i = 0; i < count_; ++i) {
      PyObject* o = items_[i];
      if (!is_tensor(o)) {
        results_[i] = Owned::share(o);
        continue;
      }
      const TensorRef& t = tensor_of(o);
      if (node_) node_->outputs[i] = {t->sizes(), t->dtype(), true};
      const bool differentiable = node_ && is_differentiable(t->dtype()) && !contains(f_->non_differentiable, o);
      if (TP_UNLIKELY(contains(f_->dirty, o)))
        attach_dirty(o, i, differentiable);
      else if (TP_LIKELY(differentiable))
        attach_result(o, i);
      else
        attach_plain(o, i);
    }
    declare_grad_dtypes();
  }

  void save() {
    PyObject* list = f_->to_save;
    if (!list) return;
    const std::size_t n = std::size_t(PyTuple_GET_SIZE(list));
    for (std::size_t k = 0; k < n; ++k) {
      PyObject* o = PyTuple_GET_ITEM(list, Py_ssize_t(k));
      if (o != Py_None && !is_tensor(o))
        type_error("save_for_backward can only save variables, but argument ", k, " is of type ", Py_TYPE(o)->tp_name);
    }
    if (!node_) return;
    node_->saved.resize(n);
    node_->saved_from.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      PyObject* o = PyTuple_GET_ITEM(list, Py_ssize_t(k));
      if (o == Py_None) continue;
      const TensorRef& t = tensor_of(o);
      if (const int output = own_output(o); output >= 0) {
        node_->saved_from[k].output = output;
        node_->saved[k].save_output(t);
      } else {
        if (t->requires_grad()) node_->saved_from[k].edge = gradient_edge(t);
        // A view that holds an output: like the output itself, a hook must not get hold of this node through it.
        const bool shows_output = t->is_view() && t->view().base->grad_fn_raw() == node_.get();
        if (shows_output && !t->has_tangent())
          node_->saved[k].save_output(t);
        else
          node_->saved[k].save(t);
      }
    }
  }

  void push_tangents() {
    dual::LevelList levels;
    for (std::size_t i = 0; i < n_; ++i)
      if (is_tensor(args_[i])) dual::collect_levels(tensor_of(args_[i]), levels);
    for (std::uint32_t level : levels) {
      wiring::WorkingLevel at(level);
      push_tangents(level);
    }
  }

  void push_tangents(std::uint32_t level) {
    Owned jvp(PyObject_GetAttr(cls_, TP_INTERNED("jvp")));
    if (!jvp) host_error();
    InlineVec<Owned, 6> owned;
    InlineVec<PyObject*, 6> call;
    InlineVec<TensorRef, 6> given(n_);  // the tangents there are, without the zeros in place of others
    call.push_back(reinterpret_cast<PyObject*>(f_));
    for (std::size_t i = 0; i < n_; ++i) {
      TensorRef tangent;
      if (is_tensor(args_[i])) {
        const TensorRef& t = tensor_of(args_[i]);
        tangent = given[i] = wiring::tangent(t);
        if (!tangent && f_->materialize && is_differentiable(t->dtype()))
          tangent = wiring::wrap(zeros_storage(t->sizes(), t->dtype()));
      }
      owned.push_back(Owned(wrap(std::move(tangent))));
      call.push_back(owned.back().get());
    }
    const batch::BasisOff like_any_level;
    f_->in_jvp = true;
    Owned result(PyObject_Vectorcall(jvp.get(), call.data(), call.size(), nullptr));
    f_->in_jvp = false;
    if (!result) host_error();
    PyObject* single = result.get();
    const bool tuple = PyTuple_Check(single);
    PyObject* const* tangents = tuple ? &PyTuple_GET_ITEM(single, 0) : &single;
    const std::size_t got = tuple ? std::size_t(PyTuple_GET_SIZE(single)) : 1;
    if (got != count_)
      runtime_error(name(), ": jvp returned ", got, " tangents, forward returned ", count_, " outputs");
    for (std::size_t i = 0; i < count_; ++i) {
      if (tangents[i] == Py_None || !is_tensor(results_[i].get())) continue;
      if (!is_tensor(tangents[i]))
        type_error(name(), ": jvp must return Tensors or None, value ", i, " is ", Py_TYPE(tangents[i])->tp_name);
      const TensorRef& out = tensor_of(results_[i].get());
      const TensorRef& t = tensor_of(tangents[i]);
      if (!(t->sizes() == out->sizes()))
        runtime_error(name(), ": jvp returned a tangent of size ", t->sizes(), " for output ", i, " of size ",
                      out->sizes());
      check_shared(i, t, {given.data(), given.size()});
      // What jvp read carries tangents of this level and of those inside it: they are no part of the derivative.
      if (is_differentiable(out->dtype()) && !contains(f_->non_differentiable, items_[i]))
        wiring::set_tangent(out, wiring::primal(t, level));
    }
  }

  PyObject* result(Owned output) {
    bool same = true;
    for (std::size_t i = 0; i < count_; ++i) same = same && results_[i].get() == items_[i];
    if (same) return output.release();
    if (!tuple_) return results_[0].release();
    Owned t(PyTuple_New(Py_ssize_t(count_)));
    if (!t) host_error();
    for (std::size_t i = 0; i < count_; ++i) PyTuple_SET_ITEM(t.get(), Py_ssize_t(i), results_[i].release());
    if (PyTuple_CheckExact(output.get())) return t.release();
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(output.get()));
    if (PyObject_HasAttrString(type, "_make")) return PyObject_CallMethod(type, "_make", "(O)", t.get());
    return PyObject_CallOneArg(type, t.get());
  }

 private:
  int input_index(PyObject* o) const {
    for (std::size_t i = 0; i < n_; ++i)
      if (args_[i] == o) return int(i);
    return -1;
  }
  // Memory that forward shares with an input, jvp shares with the tangent of that input: a later change reaches both.
  void check_shared(std::size_t i, const TensorRef& tangent, std::span<const TensorRef> given) const {
    const TensorRef& out = tensor_of(items_[i]);
    const bool dirty = contains(f_->dirty, items_[i]);
    for (std::size_t k = 0; k < n_; ++k) {
      if (!given[k] || !(args_[k] == items_[i] || (out->is_view() && block_of(tensor_of(args_[k])) == block_of(out))))
        continue;
      if (block_of(tangent) == block_of(given[k])) continue;
      if (dirty)
        runtime_error(name(), ": forward changed argument ", k,
                      " in place, but jvp returned another tensor than its "
                      "tangent; change the tangent in place and return it");
      runtime_error(name(), ": output ", i, " is argument ", k,
                    " or a view of it, but what jvp returned is no view of its "
                    "tangent; return the same view of the tangent, or a clone in forward");
    }
  }
  static const BlockRef& block_of(const TensorRef& t) { return batch::physical(t)->storage().block(); }
  bool shares_dirty_memory(const TensorRef& t) const {
    if (!f_->dirty) return false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(f_->dirty); ++k) {
      PyObject* d = PyTuple_GET_ITEM(f_->dirty, k);
      if (is_tensor(d) && tensor_of(d)->storage().block() == t->storage().block()) return true;
    }
    return false;
  }
  // Which output of this node a saved tensor is. A view changed in place has its history rebuilt from its base, through
  // this node: an edge to that history would close a cycle.
  int own_output(PyObject* o) const {
    const TensorRef& t = tensor_of(o);
    if (t->grad_fn_raw() == node_.get()) return int(t->output_nr());
    if (!contains(f_->dirty, o) || !is_differentiable(t->dtype())) return -1;
    for (std::size_t i = count_; i-- > 0;)
      if (items_[i] == o) return int(i);
    return -1;
  }
  NodeRef node_ref() const { return NodeRef::share(node_.get()); }

  void attach_dirty(PyObject* o, std::size_t i, bool differentiable) {
    const TensorRef& t = tensor_of(o);
    results_[i] = Owned::share(o);
    if (already(o, i)) {
      if (differentiable) t->set_grad_fn(NodeBaseRef(node_ref()), std::uint32_t(i));
      return;
    }
    if (differentiable && t->is_view() && count_ > 1)
      runtime_error(name(),
                    ": If your Function modifies inplace an input that is a view of another Tensor, your Function "
                    "cannot return more than one Tensor. This is not supported by the current autograd engine.");
    wiring::check_inplace(kSchema, t, differentiable || (node_ && t->requires_grad()));
    wiring::finish_inplace(t, differentiable ? node_ref() : NodeRef());
    if (differentiable && i != 0) t->set_grad_fn(NodeBaseRef(node_ref()), std::uint32_t(i));
    if (!differentiable && node_ && !t->is_leaf()) t->set_grad_fn(NodeBaseRef(), 0);
    ensure_tracked(o);
  }

  bool already(PyObject* o, std::size_t i) const {
    for (std::size_t k = 0; k < i; ++k)
      if (items_[k] == o) return true;
    return false;
  }

  void attach_result(PyObject* o, std::size_t i) {
    const TensorRef& t = tensor_of(o);
    const bool made_here = !t->requires_grad() || t->grad_fn_raw() == node_.get();
    // A new tensor returned twice: one object, whose gradient arrives in the last place.
    for (std::size_t k = 0; made_here && input_index(o) < 0 && k < i; ++k)
      if (items_[k] == o) {
        results_[i] = Owned::share(results_[k].get());
        tensor_of(results_[i].get())->set_grad_fn(NodeBaseRef(node_ref()), std::uint32_t(i));
        return;
      }
    if (TP_UNLIKELY(!made_here || input_index(o) >= 0)) {
      // An input returned as it is: a view of it, with a history of its own; in-place ops on it are refused.
      TensorRef alias = wiring::make_view(t, Storage(t->storage()), "Function", ViewKind::CustomFunction);
      wiring::attach(alias, node_ref(), std::uint32_t(i));
      results_[i] = Owned(wrap(std::move(alias)));
      if (!results_[i]) host_error();
      return;
    }
    if (TP_UNLIKELY(t->is_view())) t->view().kind = ViewKind::CustomFunction;
    wiring::attach(t, node_ref(), std::uint32_t(i));
    ensure_tracked(o);
    results_[i] = Owned::share(o);
  }

  void attach_plain(PyObject* o, std::size_t i) {
    const TensorRef& t = tensor_of(o);
    for (std::size_t k = 0; k < i; ++k)
      if (items_[k] == o) {
        results_[i] = Owned::share(results_[k].get());
        return;
      }
    if (input_index(o) >= 0 || (node_ && t->requires_grad()))
      results_[i] = Owned(wrap(wiring::wrap(t->storage())));
    else
      results_[i] = Owned::share(o);
    if (!results_[i]) host_error();
  }

  void declare_grad_dtypes() {
    PyObject* list = f_->output_grad_dtypes;
    if (!list) return;
    if (std::size_t(PyTuple_GET_SIZE(list)) != count_)
      runtime_error(name(), ": set_output_grad_dtype declared ", PyTuple_GET_SIZE(list), " dtypes, forward returned ",
                    count_, " values");
    for (std::size_t i = 0; i < count_; ++i) {
      PyObject* d = PyTuple_GET_ITEM(list, Py_ssize_t(i));
      if (d == Py_None) {
        if (node_) node_->outputs[i].any_dtype = true;
        continue;
      }
      const bool tensor = is_tensor(items_[i]);
      if (!tensor || !is_differentiable(tensor_of(items_[i])->dtype()) || contains(f_->non_differentiable, items_[i]))
        runtime_error(name(), ": set_output_grad_dtype: output ", i, " has no gradient; its declaration must be None");
      if (node_) node_->outputs[i].dtype = dtype_of(d);
    }
  }

  FunctionObject* f_;
  PyObject* cls_;
  const Ref<PythonNode>& node_;
  PyObject* const* args_;
  std::size_t n_;
  bool tuple_ = false;
  PyObject* single_ = nullptr;
  PyObject* const* items_ = nullptr;
  std::size_t count_ = 0;
  InlineVec<Owned, 3> results_;
};

}  // namespace

PyObject* finish_function(FunctionObject* f, PyObject* cls, const Ref<PythonNode>& node, PyObject* const* args,
                          std::size_t n, const InputVersions& versions, Owned output, bool forward_mode) {
  Finish finish(f, cls, node, args, n);
  finish.take(output.get());
  finish.check_undeclared(versions);
  finish.check_dirty();
  finish.check_non_differentiable();
  finish.attach();
  if (TP_UNLIKELY(forward_mode)) finish.push_tangents();
  finish.save();  // outputs with their tangents
  PyObject* result = finish.result(std::move(output));
  Py_CLEAR(f->to_save);
  Py_CLEAR(f->saved_for_forward);
  Py_CLEAR(f->dirty);
  Py_CLEAR(f->non_differentiable);
  Py_CLEAR(f->output_grad_dtypes);
  return result;
}

}  // namespace tp::python
