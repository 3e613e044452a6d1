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

class TP_API SavedValue {
 public:
  /// What rarely rides along: a packed object or a tangent.
  struct Extra {
    std::unique_ptr<PackedValue> packed;
    TensorRef tangent;
    std::uint32_t tangent_level = 0;  // read only while that dual level is open
    TensorRef subclass;  // the tensor itself, where a subclass or a transform must see it
  };

  bool saved() const { return value_.defined() || extra_; }
  /// Held something once and was freed.
  bool released() const { return released_; }
  bool plain() const { return !extra_; }
  void save(const TensorRef& t);  // an input or an intermediate
  void save_output(const TensorRef& t);  // an output: only its memory, so that no cycle arises
  void save(const Storage& s) {
    value_ = s;
    version_ = s.version();
    released_ = false;
  }
  void release() {
    if (!saved()) return;
    value_.drop();
    extra_.reset();
    released_ = true;
  }
  /// An output's tangent, known only after it was saved.
  void set_tangent(const TensorRef& tangent, std::uint32_t level);
  /// Applies hooks to what is already saved (`SavedTensor.register_hooks`).
  void pack(std::unique_ptr<PackedValue> packed);

  /// Raises when the memory changed since; `slot` names the argument.
  void check(const Node& node, const char* slot) const {
    if (TP_UNLIKELY(value_.defined() && value_.version() != version_)) version_failed(node, slot);
  }
  /// The memory; raises when it was released or never saved.
  const Storage& get(const Node& node, const char* slot) const {
    if (TP_LIKELY(value_.defined())) return value_;
    return unpacked(node, slot);
  }
  /// The tensor with its history: `edge` is where its gradient goes. Leaves come back as themselves while they live.
  TensorRef tensor(const Node& node, const char* slot, const Edge& edge) const;
  std::uint32_t version() const { return version_; }
  const Storage& raw() const { return value_; }

 private:
  [[noreturn]] void version_failed(const Node& node, const char* slot) const;
  const Storage& unpacked(const Node& node, const char* slot) const;
  Extra& ensure_extra() {
    if (!extra_) extra_ = std::make_unique<Extra>();
    return *extra_;
  }
  // What every pass looks at lies in front, beside the block that value_ begins with.
  std::unique_ptr<Extra> extra_;
  std::uint32_t version_ = 0;
  bool released_ = false;
  mutable Storage value_;
};

/// Message and error of a value read after it was freed.
[[noreturn]] TP_API void freed_error(const Node& node, const char* slot);

}  // namespace tp
