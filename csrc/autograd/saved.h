// SavedValue: memory a backward formula reads later, guarded by the version it had. Knows nothing of which op saved it.
#pragma once
#include "autograd/node.h"

namespace tp {

/// What a saved-tensor hook made of a value; the host implements it. unpack gives the value back (may be called again).
class TP_API PackedValue {
 public:
  virtual ~PackedValue();
  virtual TensorRef unpack() = 0;
};
/// Set by the host: packs `t` with the innermost saved-tensor hooks; called only while modes::kSavedHooks is set.
extern TP_API std::unique_ptr<PackedValue> (*pack_saved)(const TensorRef& t);

/// Sixteen bytes while the value is contiguous from the start of its block and has the sizes of the node's output or none
/// (a scalar): the block, its dtype and version say all. Any other value lies in a Whole.
class TP_API SavedValue {
 public:
  /// What rarely rides along: a packed object or tangents.
  struct Extra {
    std::unique_ptr<PackedValue> packed;
    InlineVec<std::pair<std::uint32_t, TensorRef>, 1> tangents;  // by forward level; read only while that level is open
    TensorRef subclass;  // the tensor itself, where a subclass or a transform must see it
  };

  SavedValue() noexcept {}
  SavedValue(SavedValue&& o) noexcept { take(o); }
  SavedValue& operator=(SavedValue&& o) noexcept {
    if (this != &o) {
      drop();
      take(o);
    }
    return *this;
  }
  ~SavedValue() { drop(); }

  bool saved() const { return kind_ != Kind::None; }
  /// Held something once and was freed.
  bool released() const { return released_; }
  bool plain() const { return !extra_; }

  /// An input or an intermediate; an output (only its memory, so that no cycle arises). `like`: the sizes of the node's output.
  void save(const TensorRef& t, const Shape* like = nullptr) {
    if (TP_LIKELY(ordinary(t)))
      keep(t->storage(), like);
    else
      save_special(t, like);
  }
  void save_output(const TensorRef& t, const Shape* like = nullptr) {
    if (TP_LIKELY(ordinary(t)))
      keep(t->storage(), like);
    else
      save_special_output(t, like);
  }
  void save(const Storage& s) { keep(s, nullptr); }

  void release() {
    if (kind_ == Kind::None) return;
    drop();
    released_ = true;
  }
  /// An output's tangent, known only after it was saved.
  void set_tangent(const Node& node, const TensorRef& tangent, std::uint32_t level);
  /// Applies hooks to what is already saved (`SavedTensor.register_hooks`).
  void pack(std::unique_ptr<PackedValue> packed);

  /// Raises when the memory changed since; `slot` names the argument.
  void check(const Node& node, const char* slot) const {
    if (kind_ == Kind::Whole) {
      if (TP_UNLIKELY(whole_->value.defined() && whole_->value.version() != version_)) version_failed(node, slot);
    } else if (kind_ != Kind::None && TP_UNLIKELY(block_->version != version_)) {
      version_failed(node, slot);
    }
  }
  /// The memory; raises when it was released or never saved. `like`: the sizes of the node's output, as when it was saved.
  Storage get(const Node& node, const char* slot, const Shape& like) const;
  Storage get(const Node& node, const char* slot) const;
  /// The tensor with its history: `edge` is where its gradient goes. Leaves come back as themselves while they live.
  TensorRef tensor(const Node& node, const char* slot, const Edge& edge) const;
  std::uint32_t version() const { return version_; }

 private:
  enum class Kind : std::uint8_t { None, LikeOutput, Scalar, Whole };
  struct Whole {
    Storage value;
    std::unique_ptr<Extra> extra;
    static void* operator new(std::size_t n) { return memory::small_alloc(n); }
    static void operator delete(void* p, std::size_t n) { memory::small_free(p, n); }
  };

  static bool ordinary(const TensorRef& t) {
    return !modes::any(modes::kSavedHooks | modes::kForward | modes::kInference) && !t->is_inference() &&
        !t->is_python_subclass();
  }
  void keep(const Storage& s, const Shape* like) {
    drop();
    version_ = s.version();
    released_ = false;
    const bool scalar = s.dim() == 0;
    if (like && s.is_contiguous() && s.offset() == 0 && (scalar || s.sizes() == *like)) {
      kind_ = scalar ? Kind::Scalar : Kind::LikeOutput;
      dtype_ = s.dtype();
      number_ = s.wrapped_number();
      block_ = BlockRef(s.block()).detach();
    } else {
      whole_ = new Whole{s, nullptr};
      kind_ = Kind::Whole;
    }
  }
  void drop() {
    if (kind_ == Kind::None) return;
    if (kind_ == Kind::Whole)
      delete whole_;
    else
      Block::release(block_);
    kind_ = Kind::None;
    extra_ = false;
  }
  void take(SavedValue& o) {
    block_ = o.block_;
    version_ = o.version_;
    dtype_ = o.dtype_;
    kind_ = o.kind_;
    number_ = o.number_;
    released_ = o.released_;
    extra_ = o.extra_;
    o.kind_ = Kind::None;
    o.extra_ = false;
  }
  void save_special(const TensorRef& t, const Shape* like);
  void save_special_output(const TensorRef& t, const Shape* like);
  bool save_packed(const TensorRef& t);
  const Extra* extra() const { return extra_ ? whole_->extra.get() : nullptr; }
  Extra& ensure_extra(const Node* node);
  [[noreturn]] void version_failed(const Node& node, const char* slot) const;
  Storage short_form(const Shape& sizes) const;
  /// Turns the short form into a Whole.
  Whole& widen(const Node* node) const;
  const Storage& unpacked(const Node& node, const char* slot) const;

  union {
    mutable Block* block_;  // LikeOutput, Scalar: one count of it
    mutable Whole* whole_;
  };
  mutable std::uint32_t version_ = 0;
  Dtype dtype_ = Dtype::F32;
  mutable Kind kind_ = Kind::None;
  bool number_ = false;
  bool released_ : 1 = false;
  bool extra_ : 1 = false;
};
static_assert(sizeof(SavedValue) == 16);

/// Message and error of a value read after it was freed.
[[noreturn]] TP_API void freed_error(const Node& node, const char* slot);

}  // namespace tp
