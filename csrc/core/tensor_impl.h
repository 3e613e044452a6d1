// TensorImpl: a Storage plus autograd identity. Knows of graph nodes only that they are counted and can be taken apart.
#pragma once
#include <cstdint>
#include <vector>

#include "core/modes.h"
#include "core/refcount.h"
#include "core/storage.h"

namespace tp {

class TensorImpl;
using TensorRef = Ref<TensorImpl>;

/// The part of an autograd node that core needs: a count and an iterative end. autograd/node.h builds Node on it.
class TP_API NodeBase {
 public:
  NodeBase() = default;
  NodeBase(const NodeBase&) = delete;
  virtual ~NodeBase();
  static void retain(NodeBase* n) { ++n->refs_.n; }
  static void release(NodeBase* n) {
    if (--n->refs_.n == 0) destroy(n);
  }
  std::uint32_t use_count() const { return refs_.n; }
  /// Told to an accumulator when its leaf is freed: it holds the leaf weakly.
  virtual void leaf_died() {}
  /// Told when a tensor whose gradient this node retains is freed.
  virtual void tensor_died(TensorImpl*) {}

 protected:
  /// Hands over the counts this node holds on other nodes, so that destruction of a long chain does not recurse.
  virtual void take_links(std::vector<NodeBase*>& out) = 0;
  /// Runs the destructor and returns the memory to where it came from.
  virtual void dispose() = 0;

 private:
  static void destroy(NodeBase* n);
  static void drain(std::vector<NodeBase*>& dead, std::vector<NodeBase*>& links);
  RefCount refs_;
};
using NodeBaseRef = Ref<NodeBase>;

/// How a view came to be: decides what an in-place op on it may do.
enum class ViewKind : std::uint8_t { Plain, MultiOutput, NoGradMode, CustomFunction };

/// What a differentiable view knows of its base.
struct ViewMeta {
  TensorRef base;  // the root, never itself a view; null: no view
  const char* op = "";  // the op that made the view, for messages
  std::uint32_t seen_version = 0;  // version of the memory grad_fn was made for; older than the base's history: stale
  ViewKind kind = ViewKind::Plain;
};

struct AutogradMeta;

/// The tangent a tensor has at one open forward level. A tensor's own list runs from the innermost level outwards; those of
/// one level form a chain, so that leaving the level clears them.
struct Tangent {
  TensorRef value;
  std::uint32_t level;
  AutogradMeta* owner;
  Tangent* outer = nullptr;  // of the same tensor, at the next level outwards
  Tangent* next = nullptr;  // of the same level
  Tangent** prev = nullptr;
  static void* operator new(std::size_t n) { return memory::small_alloc(n); }
  static void operator delete(void* p, std::size_t n) { memory::small_free(p, n); }
};

/// What few tensors have: gradient, accumulator, tangents, batch. Allocated when first needed.
struct TP_API AutogradMeta {
  TensorRef grad;
  NodeBaseRef accumulator;  // leaf only: the AccumulateGrad of this tensor
  Tangent* tangents = nullptr;
  TensorRef physical;  // batched: the tensor with the batch dimensions, which holds memory, history and tangents
  std::uint64_t level_id = 0;  // batched: the innermost of its levels, to tell a closed one
  std::uint32_t levels = 0;  // batched: one bit a level, lowest the outermost
  std::uint32_t history_version = 0;  // base of views: version of the memory from which on its history is another one
  bool retains_grad = false;
  bool has_grad_dtype = false;  // grad_dtype was set (any_grad_dtype: to None)
  bool any_grad_dtype = false;
  Dtype grad_dtype = Dtype::F32;

  AutogradMeta() = default;
  AutogradMeta(const AutogradMeta&) = delete;
  ~AutogradMeta();
  static void* operator new(std::size_t n) { return memory::small_alloc(n); }
  static void operator delete(void* p, std::size_t n) { memory::small_free(p, n); }
};

class TP_API TensorImpl {
 public:
  static TensorRef make(Storage&& storage) {
    return make_from([&]() -> Storage&& { return std::move(storage); });
  }
  static TensorRef make(const Storage& storage) { return make(Storage(storage)); }
  /// Of the Storage that `kernel()` gives, built where it stays.
  template <class F>
  static TensorRef make_from(F&& kernel) {
    return TensorRef::adopt(new TensorImpl(kernel));
  }
  static void retain(TensorImpl* t) { ++t->refs_.n; }
  static void release(TensorImpl* t) {
    if (--t->refs_.n == 0) destroy(t);
  }
  std::uint32_t use_count() const { return refs_.n; }

  const Storage& storage() const { return storage_; }
  Storage& storage() { return storage_; }
  void set_storage(Storage s) {
    reshaped_ = s.block() == storage_.block();
    storage_ = std::move(s);
  }
  /// Whether the last set_storage changed sizes or strides over the same memory (transpose_): no element was written then.
  bool reshaped() const { return reshaped_; }
  void clear_reshaped() { reshaped_ = false; }
  /// In forward mode: an in-place op has just written here, so that the tangent that follows is an update.
  bool written() const { return written_; }
  void set_written(bool v) { written_ = v; }
  Dtype dtype() const { return storage_.dtype(); }
  Device device() const { return storage_.device(); }
  const Shape& sizes() const { return storage_.sizes(); }
  int dim() const { return storage_.dim(); }
  std::int64_t numel() const { return storage_.numel(); }

  /// True for a leaf that asked for it, for every result that has a grad_fn, and for a view of a base that got one.
  /// A batched tensor answers for its physical one.
  bool requires_grad() const { return requires_grad_ || (TP_UNLIKELY(meta_ || view_.base) && follows_history()); }
  bool is_leaf() const {
    return !grad_fn_ &&
        !(TP_UNLIKELY(meta_ || view_.base) && (batched_ ? !meta_->physical->is_leaf() : follows_history()));
  }
  void set_requires_grad(bool v) {  // leaf only; callers check
    requires_grad_ = v;
    // Its views keep the history they have until the memory changes next.
    if (TP_UNLIKELY(viewed_)) ensure_meta().history_version = storage_.version() + 1;
  }
  NodeBase* grad_fn_raw() const { return grad_fn_.get(); }
  std::uint32_t output_nr() const { return output_nr_; }
  void set_grad_fn(NodeBaseRef fn, std::uint32_t output_nr) {
    requires_grad_ = bool(fn);
    grad_fn_ = std::move(fn);
    output_nr_ = output_nr;
  }

  AutogradMeta* meta() const { return meta_; }
  AutogradMeta& ensure_meta();
  bool is_view() const { return bool(view_.base); }
  const ViewMeta& view() const { return view_; }
  ViewMeta& view() { return view_; }
  /// Whether there is more to look at than memory and grad_fn.
  bool is_special() const { return meta_ || view_.base; }
  const TensorRef& grad() const {
    static const TensorRef none;
    return meta_ ? meta_->grad : none;
  }
  /// Whether it carries a tangent of any open forward level.
  bool has_tangent() const {
    return (TP_UNLIKELY(meta_ != nullptr) && (meta_->tangents || (batched_ && meta_->physical->has_tangent()))) ||
        (view_.base && view_.base->has_tangent());
  }
  /// A value inside vmap: its storage tells logical sizes and dtype, and holds no elements. See csrc/transforms.
  bool is_batched() const { return batched_; }
  void set_batched(TensorRef physical, std::uint32_t levels, std::uint64_t level_id);
  /// A view whose base was changed, and had its history moved or cut, since the view was made: its grad_fn has to be made
  /// anew.
  bool view_is_stale() const {
    const AutogradMeta* base = view_.base ? view_.base->meta_ : nullptr;
    return base && view_.seen_version < base->history_version && view_.seen_version < storage_.version();
  }
  /// Set once a view of this tensor exists.
  bool is_viewed() const { return viewed_; }
  void set_viewed() { viewed_ = true; }

  bool is_inference() const { return inference_; }
  void set_inference(bool v) { inference_ = v; }
  bool is_python_subclass() const { return subclass_; }
  void set_python_subclass(bool v) { subclass_ = v; }

  /// The host's object for this tensor. Not owned, unless the object outlived its last host reference (owns_host_object).
  void* host_object = nullptr;
  bool owns_host_object = false;

 private:
  template <class F>
  explicit TensorImpl(F& kernel) : storage_(kernel()) {}
  static void* operator new(std::size_t n) { return memory::small_alloc(n); }
  static void operator delete(void* p, std::size_t n) { memory::small_free(p, n); }
  ~TensorImpl();
  static void destroy(TensorImpl* t);
  bool follows_history() const {
    if (batched_) return meta_->physical->requires_grad();
    return view_is_stale() && view_.kind != ViewKind::NoGradMode && view_.base->requires_grad();
  }

  // The flags follow owns_host_object: eight bytes in all.
  bool requires_grad_ = false;
  bool inference_ = false;
  bool subclass_ = false;
  bool viewed_ = false;
  bool reshaped_ = false;
  bool written_ = false;
  bool batched_ = false;
  RefCount refs_;
  std::uint32_t output_nr_ = 0;
  NodeBaseRef grad_fn_;
  AutogradMeta* meta_ = nullptr;
  ViewMeta view_;
  Storage storage_;
};

/// Batched tensors that live, of all threads (guarded by the host's lock).
extern TP_API std::uint64_t batched_alive;

inline const Storage& storage(const TensorRef& t) { return t->storage(); }
inline Storage storage_or_absent(const TensorRef& t) { return t ? t->storage() : Storage(); }

/// Drops the host object an impl owns when the impl's last reference went; set by the host. True: the object is still in
/// use and took the impl back, which then lives on.
extern TP_API bool (*drop_host_object)(void*);

}  // namespace tp
