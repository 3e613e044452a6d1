// Storage: a value handle on memory (block, offset, dtype, device, sizes, strides). It has no autograd identity.
#pragma once
#include <cstdint>
#include <new>
#include <utility>

#include "core/allocator.h"
#include "core/dims.h"
#include "core/dtype.h"
#include "core/refcount.h"

namespace tp {

enum class Device : std::uint8_t { CPU };

/// Memory shared by a tensor, its views and saved handles. The version counts in-place changes of this memory.
struct Block {
  RefCount refs;
  std::uint32_t version = 0;
  char* data = nullptr;
  std::size_t nbytes = 0;
  void (*free)(Block*) = nullptr;  // returns the memory and the Block itself
  void* owner = nullptr;           // for foreign memory: what keeps it alive
  bool read_only = false;

  static void retain(Block* b) { ++b->refs.n; }
  static void release(Block* b) {
    if (--b->refs.n == 0) b->free(b);
  }
};
using BlockRef = Ref<Block>;

/// Uninitialised memory; up to 512 bytes lie inside the Block's own allocation.
TP_API BlockRef make_block(std::size_t nbytes);
/// Memory owned by somebody else; `free` is called with the Block when the last handle goes.
TP_API BlockRef adopt_block(void* data, std::size_t nbytes, void* owner, void (*free)(Block*), bool read_only);
/// Another version counter over the same memory (what `.data` gives).
TP_API BlockRef alias_block(const BlockRef& block);

class Storage {
 public:
  Storage() noexcept {}
  Storage(BlockRef block, Dtype dtype, const Shape& sizes) : block_(std::move(block)), sizes_(sizes), dtype_(dtype) {
    set_contiguous();
  }
  TP_API Storage(BlockRef block, Dtype dtype, const Shape& sizes, const Strides& strides, std::int64_t offset);

  /// False for a default-constructed Storage: an absent gradient.
  bool defined() const { return bool(block_); }
  explicit operator bool() const { return defined(); }

  Dtype dtype() const { return dtype_; }
  Device device() const { return Device::CPU; }
  int dim() const { return sizes_.size(); }
  const Shape& sizes() const { return sizes_; }
  const Strides& strides() const { return strides_; }
  std::int64_t size(int i) const { return sizes_[i]; }
  std::int64_t stride(int i) const { return strides_[i]; }
  std::int64_t offset() const { return offset_; }  // in elements
  std::int64_t numel() const { return numel_; }
  std::size_t nbytes() const { return std::size_t(numel_) * item_size(dtype_); }
  bool is_contiguous() const { return contiguous_; }
  /// True when distinct indices never share an element and the elements fill a range without gaps.
  TP_API bool is_dense() const;

  const BlockRef& block() const { return block_; }
  std::uint32_t version() const { return block_->version; }
  void bump_version() const { ++block_->version; }
  bool unique() const { return block_->refs.n == 1; }

  char* raw() const { return block_->data + offset_ * std::int64_t(item_size(dtype_)); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(raw());
  }

  /// The same memory under other sizes and strides (offset absolute, in elements).
  Storage with_geometry(const Shape& sizes, const Strides& strides, std::int64_t offset) const {
    return Storage(block_, dtype_, sizes, strides, offset);
  }
  /// The same memory as contiguous elements under other sizes.
  Storage with_sizes(const Shape& sizes) const {
    Storage s(block_, dtype_, sizes);
    s.offset_ = offset_;
    return s;
  }
  /// Whether two handles cover exactly the same elements in the same order.
  bool same_view(const Storage& o) const {
    return block_ == o.block_ && offset_ == o.offset_ && dtype_ == o.dtype_ && sizes_ == o.sizes_ &&
        strides_ == o.strides_;
  }
  void reset() { *this = Storage(); }
  /// Contiguous elements of `block`, from its start. For a place that holds nothing yet: cheaper than a move from elsewhere.
  void become(BlockRef block, Dtype dtype, const Shape& sizes) {
    sizes_ = sizes;
    offset_ = 0;
    dtype_ = dtype;
    wrapped_number_ = false;
    set_contiguous();
    block_ = std::move(block);
  }
  /// Lets go of the memory; sizes and dtype stay readable.
  void drop() { block_.reset(); }

  /// A 0-d value that came from a Python number: it yields in promotion.
  bool wrapped_number() const { return wrapped_number_; }
  void set_wrapped_number(bool v) { wrapped_number_ = v; }

 private:
  void set_contiguous() {
    const int n = sizes_.size();
    strides_.resize(n);
    const std::int64_t* sizes = sizes_.data();
    std::int64_t *strides = strides_.data(), step = 1, count = 1;
    for (int i = n - 1; i >= 0; --i) {
      const std::int64_t size = sizes[i];
      strides[i] = step;
      step *= size > 1 ? size : 1;
      count *= size;
    }
    numel_ = count;
    contiguous_ = true;
  }

  BlockRef block_;
  std::int64_t offset_ = 0;
  std::int64_t numel_ = 0;
  Shape sizes_;
  Strides strides_;
  Dtype dtype_ = Dtype::F32;
  bool contiguous_ = true;
  bool wrapped_number_ = false;
};

TP_API std::int64_t product(const Dims& d);
TP_API Strides contiguous_strides(const Shape& sizes);
/// Whether elements may share memory, as those of expanded tensors and of windows do.
TP_API bool may_repeat(const Shape& sizes, const Strides& strides);
/// Uninitialised contiguous result. Throws ErrorKind::Memory or Value (sizes that overflow or are negative).
TP_API Storage empty(const Shape& sizes, Dtype dtype);
TP_API Storage zeros_storage(const Shape& sizes, Dtype dtype);
TP_API Storage ones_storage(const Shape& sizes, Dtype dtype);

}  // namespace tp
