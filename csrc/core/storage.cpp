// Blocks and the geometry of Storage.
#include "core/storage.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "core/block_count.h"
#include "core/errors.h"
#include "core/half_bits.h"

namespace tp {

std::uint64_t memory::blocks_freed = 0;
std::uint64_t memory::inline_bytes = 0;

namespace {

constexpr std::size_t kHeader = (sizeof(Block) + 15) / 16 * 16;
constexpr std::size_t kInlineBytes = memory::kSmallMax - kHeader;

void free_inline(Block* b) {
  ++memory::blocks_freed;
  memory::inline_bytes -= b->nbytes;
  const std::size_t total = kHeader + b->nbytes;
  b->~Block();
  memory::small_free(b, total);
}
void free_large(Block* b) {
  ++memory::blocks_freed;
  memory::large_free(b->data, b->nbytes);
  b->~Block();
  memory::small_free(b, sizeof(Block));
}
void free_alias(Block* b) {
  Block::release(static_cast<Block*>(b->owner));
  b->~Block();
  memory::small_free(b, sizeof(Block));
}

}  // namespace

BlockRef make_block(std::size_t nbytes) {
  ++memory::blocks_made;
  if (nbytes <= kInlineBytes) {
    memory::inline_bytes += nbytes;
    Block* b = new (memory::small_alloc(kHeader + nbytes)) Block;
    b->data = reinterpret_cast<char*>(b) + kHeader;
    b->nbytes = nbytes;
    b->free = free_inline;
    return BlockRef::adopt(b);
  }
  void* data = memory::large_alloc(nbytes);
  Block* b = new (memory::small_alloc(sizeof(Block))) Block;
  b->data = static_cast<char*>(data);
  b->nbytes = nbytes;
  b->free = free_large;
  return BlockRef::adopt(b);
}

BlockRef adopt_block(void* data, std::size_t nbytes, void* owner, void (*free)(Block*), bool read_only) {
  Block* b = new (memory::small_alloc(sizeof(Block))) Block;
  b->data = static_cast<char*>(data);
  b->nbytes = nbytes;
  b->owner = owner;
  b->free = free;
  b->read_only = read_only;
  return BlockRef::adopt(b);
}

BlockRef alias_block(const BlockRef& block) {
  Block* b = new (memory::small_alloc(sizeof(Block))) Block;
  b->data = block->data;
  b->nbytes = block->nbytes;
  b->owner = BlockRef(block).detach();
  b->free = free_alias;
  b->read_only = block->read_only;
  return BlockRef::adopt(b);
}

Storage::Storage(BlockRef block, Dtype dtype, const Shape& sizes, const Strides& strides, std::int64_t offset)
    : block_(std::move(block)), offset_(offset), dtype_(dtype) {
  // One by one: they have often been written just now, and a wider load would wait for that.
  sizes_.resize(sizes.size());
  strides_.resize(sizes.size());
  std::int64_t *own_n = sizes_.data(), *own_by = strides_.data();
  const std::int64_t *n = sizes.data(), *by = strides.data();
  std::int64_t count = 1, step = 1;
  bool contiguous = true;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    own_n[i] = n[i];
    own_by[i] = by[i];
    count *= n[i];
    if (n[i] == 1) continue;
    contiguous &= by[i] == step;
    step *= n[i];
  }
  numel_ = count;
  contiguous_ = contiguous || count == 0;
}

bool Storage::is_dense() const {
  if (contiguous_) return true;
  Dims order;
  for (int i = 0; i < dim(); ++i)
    if (sizes_[i] != 1) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return strides_[int(a)] < strides_[int(b)]; });
  std::int64_t step = 1;
  for (std::int64_t i : order) {
    if (strides_[int(i)] != step) return false;
    step *= sizes_[int(i)];
  }
  return true;
}

bool may_repeat(const Shape& sizes, const Strides& strides) {
  Dims order;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return false;
    if (sizes[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return strides[int(a)] < strides[int(b)]; });
  std::int64_t reach = 0;
  for (std::int64_t i : order) {
    if (strides[int(i)] <= reach) return true;
    reach += (sizes[int(i)] - 1) * strides[int(i)];
  }
  return false;
}

std::int64_t product(const Dims& d) {
  std::int64_t n = 1;
  for (std::int64_t v : d) n *= v;
  return n;
}

Strides contiguous_strides(const Shape& sizes) {
  Strides s;
  s.resize(sizes.size());
  std::int64_t step = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    s[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return s;
}

Storage empty(const Shape& sizes, Dtype dtype) {
  std::int64_t bytes = std::int64_t(item_size(dtype));
  bool overflow = false, zero = false;
  for (std::int64_t v : sizes) {
    if (TP_UNLIKELY(v < 0)) value_error("empty: negative size in ", sizes);
    zero |= v == 0;
    overflow |= __builtin_mul_overflow(bytes, v ? v : 1, &bytes);
  }
  if (TP_UNLIKELY(overflow && !zero))
    fail(ErrorKind::Memory, "allocation of a tensor of sizes ", sizes, " failed: its byte count overflows");
  return Storage(make_block(zero ? 0 : std::size_t(bytes)), dtype, sizes);
}

Storage zeros_storage(const Shape& sizes, Dtype dtype) {
  Storage s = empty(sizes, dtype);
  std::memset(s.raw(), 0, s.nbytes());
  return s;
}

Storage ones_storage(const Shape& sizes, Dtype dtype) {
  Storage s = empty(sizes, dtype);
  const std::int64_t n = s.numel();
  // What is filled is copied behind itself, a few pages at a time: at the pace of memory, whatever the type.
  const auto repeat = [&](std::size_t done) {
    for (const std::size_t all = s.nbytes(); done && done < all;) {
      const std::size_t next = std::min({done, std::size_t(16384), all - done});
      std::memcpy(s.raw() + done, s.raw(), next);
      done += next;
    }
  };
  const auto fill = [&](auto one) {
    const std::int64_t first = std::min<std::int64_t>(n, 64);
    std::fill_n(s.data<decltype(one)>(), first, one);
    repeat(std::size_t(first) * sizeof one);
  };
  switch (dtype) {
    case Dtype::Bool:
    case Dtype::U8:
    case Dtype::I8: fill(std::uint8_t(1)); break;
    case Dtype::I16:
    case Dtype::U16: fill(std::uint16_t(1)); break;
    case Dtype::I32:
    case Dtype::U32: fill(std::uint32_t(1)); break;
    case Dtype::I64:
    case Dtype::U64: fill(std::uint64_t(1)); break;
    case Dtype::F16: fill(kHalfOne); break;
    case Dtype::BF16: fill(kBfloat16One); break;
    case Dtype::F32: fill(1.0f); break;
    case Dtype::F64: fill(1.0); break;
    case Dtype::C64: fill(std::complex<float>(1)); break;
    case Dtype::C128: fill(std::complex<double>(1)); break;
  }
  return s;
}

}  // namespace tp
