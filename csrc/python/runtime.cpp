// Functions about the process: threads, memory, build, anomaly mode, forward levels; and what the library asks of Python.
#include <sstream>
#include <thread>

#include "autograd/dual_level.h"
#include "core/block_count.h"
#include "core/parallel_for.h"
#include "kernels/loops.h"
#include "ops/wiring.h"
#include "python/ops_used.h"
#include "python/tensor_type.h"
#include "transforms/batched.h"

namespace tp::python {
namespace {

// ---- what libtensorplay asks of its host -----------------------------------------------------------------------------
void* release_lock() { return PyEval_SaveThread(); }
void acquire_lock(void* token) { PyEval_RestoreThread(static_cast<PyThreadState*>(token)); }
void check_signals() {
  if (PyErr_CheckSignals() < 0) host_error();
}
// Signals are the main thread's; a kernel on it has given the lock back or not.
const std::thread::id main_thread = std::this_thread::get_id();
void poll_signals() {
  if (std::this_thread::get_id() != main_thread) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool stop = PyErr_CheckSignals() < 0;
  PyGILState_Release(state);
  if (stop) throw HostError();
}
// May be called while an error is pending (anomaly mode tells of the forward first): that error then wins.
void warn(const char* message) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const bool raised = PyErr_WarnEx(PyExc_UserWarning, message, 1) < 0;
  if (type) {
    PyErr_Restore(type, value, trace);
  } else if (raised) {
    host_error();
  }
}

PyObject* mutation_callback = nullptr;
void before_change(const void* tensor) {
  if (!mutation_callback) return;
  Owned f = Owned::share(mutation_callback);
  Owned t(wrap(*static_cast<const TensorRef*>(tensor)));
  Owned r(t ? PyObject_CallOneArg(f.get(), t.get()) : nullptr);
  if (!r) host_error();
}

// The Python stack as text, innermost call last.
std::string python_stack() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  std::string text;
  {
    Owned lines(PyObject_CallNoArgs(import_attr("traceback", "format_stack").get()));
    Owned empty(PyUnicode_FromString(""));
    Owned joined(lines ? PyUnicode_Join(empty.get(), lines.get()) : nullptr);
    if (joined) text = PyUnicode_AsUTF8(joined.get());
  }
  PyErr_Restore(type, value, trace);
  return text;
}

// ---- threads, memory, build ------------------------------------------------------------------------------------------
PyObject* set_threads(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const long n = PyLong_Check(o) ? PyLong_AsLong(o) : 0;
    if (n == -1 && PyErr_Occurred()) return nullptr;
    if (!PyLong_Check(o) || n < 1) value_error("set_num_threads: expects a positive integer");
    set_num_threads(int(std::min(n, 1024L)));
    Py_RETURN_NONE;
  });
}
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }

PyObject* memory_stats(PyObject*, PyObject*) {
  const memory::Stats s = memory::stats();
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "in_use", static_cast<unsigned long long>(s.in_use), "cached",
                       static_cast<unsigned long long>(s.cached), "peak", static_cast<unsigned long long>(s.peak),
                       "allocations", static_cast<unsigned long long>(s.allocations), "blocks_made",
                       static_cast<unsigned long long>(memory::blocks_made), "blocks_live",
                       static_cast<unsigned long long>(memory::blocks_live()), "cache_limit",
                       static_cast<unsigned long long>(memory::cache_limit()));
}
PyObject* memory_reset_peak(PyObject*, PyObject*) {
  memory::reset_peak();
  Py_RETURN_NONE;
}
PyObject* memory_trim(PyObject*, PyObject*) {
  memory::trim();
  Py_RETURN_NONE;
}
PyObject* memory_set_limit(PyObject*, PyObject* o) {
  const unsigned long long n = PyLong_AsUnsignedLongLong(o);
  if (n == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  memory::set_cache_limit(n);
  Py_RETURN_NONE;
}

#if !defined(TP_VERSION)
#define TP_VERSION "0"
#endif
PyObject* show_config(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::ostringstream s;
    s << "tensorplay " << TP_VERSION << "\n"
      << "  compiler: " <<
#if defined(__clang__)
        "clang "
#else
        "gcc "
#endif
      << __VERSION__ << ", C++ " << __cplusplus / 100 % 100 << "\n"
      << "  python: " << PY_VERSION << "\n"
      << "  kernels: " << isa_name(active_isa()) << " (TENSORPLAY_ISA overrides)\n"
      << "  threads: " << num_threads() << "\n"
      << "  blas: OpenBLAS (scipy-openblas32), its own threads off\n"
      << "  default dtype: " << dtype_name(default_float()) << "\n"
      << "  devices: cpu\n";
    return PyUnicode_FromString(s.str().c_str());
  });
}

// ---- anomaly mode ----------------------------------------------------------------------------------------------------
PyObject* set_anomaly(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 1 || n > 2) {
    PyErr_SetString(PyExc_TypeError, "_set_anomaly: takes (mode, check_nan=True)");
    return nullptr;
  }
  const int on = PyObject_IsTrue(args[0]), check = n > 1 ? PyObject_IsTrue(args[1]) : 1;
  if (on < 0 || check < 0) return nullptr;
  PyObject* before =
      Py_BuildValue("(NN)", PyBool_FromLong(modes::any(modes::kAnomaly)), PyBool_FromLong(anomaly_check_nan));
  modes::word = (modes::word & ~std::uint32_t(modes::kAnomaly)) | (on ? std::uint32_t(modes::kAnomaly) : 0u);
  anomaly_check_nan = check;
  return before;
}
PyObject* is_anomaly_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes::any(modes::kAnomaly)); }
PyObject* is_anomaly_check_nan(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_check_nan); }

// ---- versions and memory of a tensor ---------------------------------------------------------------------------------
const TensorRef& need_tensor(const char* op, PyObject* o) {
  if (!is_tensor(o)) type_error(op, ": expected a Tensor, not ", Py_TYPE(o)->tp_name);
  return tensor_of(o);
}
PyObject* bump_version(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const TensorRef& t = need_tensor("increment_version", o);
    if (!t->is_inference()) batch::physical(t)->storage().bump_version();
    Py_RETURN_NONE;
  });
}
PyObject* block_id(PyObject*, PyObject* o) {
  return guarded(
      [&] { return PyLong_FromVoidPtr(batch::physical(need_tensor("_block_id", o))->storage().block().get()); });
}
// ---- memory below tensors, for copies and pickles that keep what shares memory sharing it -------------------------------
PyObject* memory_of(PyObject*, PyObject* o) {
  return guarded([&] {
    need_values(need_tensor("_memory_of", o), "_memory_of");
    const BlockRef& block = tensor_of(o)->storage().block();
    return wrap(TensorImpl::make(Storage(block, Dtype::U8, {std::int64_t(block->nbytes)})));
  });
}
Dims numbers_of(PyObject* tuple) {
  Dims out;
  if (!PyTuple_Check(tuple)) type_error("_view_of_memory: expected a tuple of int, not ", Py_TYPE(tuple)->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    out.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
    if (PyErr_Occurred()) host_error();
  }
  return out;
}
// (memory, dtype, sizes, strides, offset in elements); a pickle may say anything, so the bounds are looked at.
PyObject* view_of_memory(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    Dtype d;
    if (n != 5 || !dtype_from(args[1], &d))
      type_error("_view_of_memory: takes (memory, dtype, sizes, strides, offset)");
    const Storage& s = need_tensor("_view_of_memory", args[0])->storage();
    Shape sizes = numbers_of(args[2]);
    Strides strides = numbers_of(args[3]);
    const std::int64_t offset = PyLong_AsLongLong(args[4]);
    if (PyErr_Occurred()) return nullptr;
    std::int64_t first = offset, last = offset;
    bool inside = sizes.size() == strides.size() && s.dtype() == Dtype::U8 && s.is_contiguous(), none = false;
    for (int i = 0; i < sizes.size() && inside; ++i) {
      none |= sizes[i] == 0;
      std::int64_t reach = 0;
      std::int64_t& end = strides[i] < 0 ? first : last;
      inside = sizes[i] >= 0 && !__builtin_mul_overflow(sizes[i] ? sizes[i] - 1 : 0, strides[i], &reach) &&
          !__builtin_add_overflow(end, reach, &end);
    }
    if (!inside || (!none && (first < 0 || last >= s.numel() / std::int64_t(item_size(d)))))
      value_error("_view_of_memory: sizes ", sizes, " with strides ", strides, " from ", offset, " on are not inside ",
                  s.numel(), " bytes of ", dtype_name(d));
    return wrap(wiring::wrap(Storage(s.block(), d, std::move(sizes), std::move(strides), offset)));
  });
}
PyObject* set_mutation_callback(PyObject*, PyObject* f) {
  Py_XSETREF(mutation_callback, f == Py_None ? nullptr : Owned::share(f).release());
  modes::word = (modes::word & ~std::uint32_t(modes::kMutationAllowed)) |
      (mutation_callback ? std::uint32_t(modes::kMutationAllowed) : 0u);
  Py_RETURN_NONE;
}
PyObject* set_attribute(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    const char* name = n == 2 && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : nullptr;
    if (!name) type_error("_set_tensor_attribute: takes (name, value)");
    set_tensor_attribute(name, args[1]);
    Py_RETURN_NONE;
  });
}

// ---- forward levels --------------------------------------------------------------------------------------------------
// One dual_level is open at a time, and Python knows it as number 0. No number: the innermost level, a transform's too.
std::uint32_t level_named(const char* op, PyObject* o) {
  if (!o || o == Py_None) return dual::current_level();
  const long nr = PyLong_AsLong(o);
  if (nr == -1 && PyErr_Occurred()) host_error();
  if (nr < 0) return 0;
  if (nr > 0 || !dual::exclusive_level())
    runtime_error(op, ": there is no open forward AD level ", nr, "; dual_level() opens level 0, or leave level out");
  return dual::exclusive_level();
}
PyObject* enter_dual(PyObject*, PyObject*) {
  return guarded([&] {
    dual::enter_level(true);
    return PyLong_FromLong(0);
  });
}
PyObject* exit_dual(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (!dual::current_level())
      runtime_error("exit_dual_level: Trying to exit a forward AD level when no level is currently active.");
    dual::exit_level(level_named("exit_dual_level", n > 0 ? args[0] : nullptr));
    Py_RETURN_NONE;
  });
}
PyObject* set_forward_enabled(PyObject*, PyObject* on) {
  return guarded([&] { return PyBool_FromLong(dual::set_enabled(on == Py_True)); });
}
PyObject* is_forward_enabled(PyObject*, PyObject*) { return PyBool_FromLong(dual::enabled()); }

PyObject* make_dual(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 2) type_error("make_dual: takes (tensor, tangent, level=None)");
    const TensorRef& given = need_tensor("make_dual", args[0]);
    // History and tangents belong to the physical tensor; the tangent may stay batched at levels the primal lacks.
    const batch::Levels levels = batch::levels_of(given);
    const TensorRef& t = batch::physical(given);
    const TensorRef tangent = batch::peel(need_tensor("make_dual", args[1]), levels);
    const std::uint32_t level = level_named("make_dual", n > 2 ? args[2] : nullptr);
    if (!level)
      runtime_error(
          "make_dual: Trying to create a dual Tensor for forward AD but no level exists, make sure to "
          "enter_dual_level() first");
    if (!(t->sizes() == tangent->sizes()))
      runtime_error("make_dual: the tangent has sizes ", tangent->sizes(), ", the primal ", t->sizes(),
                    "; they must be equal");
    if (dual::tangent_of(t, level))
      runtime_error(
          "make_dual: Making a dual Tensor based on a Tensor that already has a forward gradient at the same level is "
          "not supported; unpack_dual() gives its primal");
    if (dual::tangent_of(batch::physical(tangent), level))
      runtime_error(
          "make_dual: Setting a forward grad that itself has a forward gradient at the same level is not supported; "
          "give the primal of the tangent, or use func.jvp, which nests");
    // A recorded view: gradients go through it, and hooks and .grad of the dual are its own.
    TensorRef dual = ops::view(t, t->sizes());
    wiring::set_tangent(dual, tangent);
    return wrap(batch::wrap(std::move(dual), levels));
  });
}
PyObject* unpack_dual(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 1) type_error("unpack_dual: takes (tensor, level=None)");
    const TensorRef& given = need_tensor("unpack_dual", args[0]);
    const batch::Levels levels = batch::levels_of(given);
    const TensorRef& t = batch::physical(given);
    const std::uint32_t level = dual::current_level() ? level_named("unpack_dual", n > 1 ? args[1] : nullptr) : 0;
    TensorRef tangent = level && dual::enabled() ? dual::tangent_of(t, level) : TensorRef();
    Owned primal(tangent ? wrap(batch::wrap(wiring::primal(t), levels)) : Owned::share(args[0]).release());
    Owned other(wrap(batch::cover(tangent, levels)));
    return primal && other ? PyTuple_Pack(2, primal.get(), other.get()) : nullptr;
  });
}

template <class F>
PyCFunction fastcall(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {
    {"set_num_threads", set_threads, METH_O, "set_num_threads(n)\n--\n\nThreads that large operations are split over."},
    {"get_num_threads", get_threads, METH_NOARGS,
     "get_num_threads()\n--\n\nThreads that large operations are split over."},
    {"show_config", show_config, METH_NOARGS,
     "show_config()\n--\n\nHow this build was made and what it runs on, as text."},
    {"_memory_stats", memory_stats, METH_NOARGS, nullptr},
    {"_memory_reset_peak", memory_reset_peak, METH_NOARGS, nullptr},
    {"_memory_trim", memory_trim, METH_NOARGS, nullptr},
    {"_memory_set_cache_limit", memory_set_limit, METH_O, nullptr},
    {"_set_anomaly", fastcall(set_anomaly), METH_FASTCALL, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "is_anomaly_enabled()\n--\n\nWhether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan, METH_NOARGS,
     "is_anomaly_check_nan_enabled()\n--\n\nWhether backward stops at a nan in anomaly mode."},
    {"_bump_version", bump_version, METH_O, nullptr},
    {"_block_id", block_id, METH_O, nullptr},
    {"_memory_of", memory_of, METH_O, nullptr},
    {"_view_of_memory", fastcall(view_of_memory), METH_FASTCALL, nullptr},
    {"_set_mutation_callback", set_mutation_callback, METH_O, nullptr},
    {"_set_tensor_attribute", fastcall(set_attribute), METH_FASTCALL, nullptr},
    {"_enter_dual_level", enter_dual, METH_NOARGS, nullptr},
    {"_exit_dual_level", fastcall(exit_dual), METH_FASTCALL, nullptr},
    {"_set_fwd_grad_enabled", set_forward_enabled, METH_O, nullptr},
    {"_is_fwd_grad_enabled", is_forward_enabled, METH_NOARGS, nullptr},
    {"_make_dual", fastcall(make_dual), METH_FASTCALL, nullptr},
    {"_unpack_dual", fastcall(unpack_dual), METH_FASTCALL, nullptr},
    {}};

}  // namespace

void init_runtime(PyObject* module) {
  modes::host.release_lock = release_lock;
  modes::host.acquire_lock = acquire_lock;
  modes::host.check_signals = check_signals;
  poll_interrupt = poll_signals;
  modes::host.warn = warn;
  modes::host.before_change = before_change;
  forward_location = python_stack;
  if (PyModule_AddFunctions(module, functions) < 0) host_error();
}

}  // namespace tp::python
