// Element types: sizes, categories, promotion. Knows nothing of tensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/api.h"

namespace tp {

enum class Dtype : std::uint8_t { Bool, U8, I8, I16, I32, I64, U16, U32, U64, F16, BF16, F32, F64, C64, C128 };
inline constexpr int kNumDtypes = 15;

/// The types loops are compiled for. Every other dtype is staged: small integers through I32, halves through F32.
enum class Compute : std::uint8_t { B8, I32, I64, U64, F32, F64, C64, C128 };
inline constexpr int kNumComputes = 8;

/// Promotion category: a Python or 0-d operand only raises the category, never the width inside it.
enum class Category : std::uint8_t { Bool, Integer, Float, Complex };

namespace detail {
struct DtypeInfo {
  std::uint8_t size;
  Category category;
  Compute compute;
  bool is_signed;
  std::string_view name;
};
inline constexpr DtypeInfo kDtypeInfo[kNumDtypes] = {
    {1, Category::Bool, Compute::B8, false, "bool"},           {1, Category::Integer, Compute::I32, false, "uint8"},
    {1, Category::Integer, Compute::I32, true, "int8"},        {2, Category::Integer, Compute::I32, true, "int16"},
    {4, Category::Integer, Compute::I32, true, "int32"},       {8, Category::Integer, Compute::I64, true, "int64"},
    {2, Category::Integer, Compute::I32, false, "uint16"},     {4, Category::Integer, Compute::I64, false, "uint32"},
    {8, Category::Integer, Compute::U64, false, "uint64"},     {2, Category::Float, Compute::F32, true, "float16"},
    {2, Category::Float, Compute::F32, true, "bfloat16"},      {4, Category::Float, Compute::F32, true, "float32"},
    {8, Category::Float, Compute::F64, true, "float64"},       {8, Category::Complex, Compute::C64, true, "complex64"},
    {16, Category::Complex, Compute::C128, true, "complex128"}};
}  // namespace detail

constexpr std::size_t item_size(Dtype d) { return detail::kDtypeInfo[int(d)].size; }
constexpr Category category(Dtype d) { return detail::kDtypeInfo[int(d)].category; }
constexpr Compute compute_type(Dtype d) { return detail::kDtypeInfo[int(d)].compute; }
constexpr std::string_view dtype_name(Dtype d) { return detail::kDtypeInfo[int(d)].name; }
constexpr bool is_signed(Dtype d) { return detail::kDtypeInfo[int(d)].is_signed; }
constexpr bool is_float(Dtype d) { return category(d) == Category::Float; }
constexpr bool is_complex(Dtype d) { return category(d) == Category::Complex; }
constexpr bool is_integral(Dtype d) { return category(d) <= Category::Integer; }
constexpr bool is_differentiable(Dtype d) { return category(d) >= Category::Float; }

/// The dtype whose memory is laid out as the compute type (I32 for I32, Bool for B8, ...).
constexpr Dtype dtype_of(Compute c) {
  constexpr Dtype table[kNumComputes] = {Dtype::Bool, Dtype::I32, Dtype::I64, Dtype::U64,
                                         Dtype::F32,  Dtype::F64, Dtype::C64, Dtype::C128};
  return table[int(c)];
}
constexpr Dtype real_dtype(Dtype d) { return d == Dtype::C64 ? Dtype::F32 : d == Dtype::C128 ? Dtype::F64 : d; }
constexpr Dtype complex_dtype(Dtype d) { return d == Dtype::F64 || d == Dtype::C128 ? Dtype::C128 : Dtype::C64; }

/// The smallest dtype both operands convert to without losing category (PyTorch's table).
TP_API Dtype promote_types(Dtype a, Dtype b);
TP_API bool can_cast(Dtype from, Dtype to);

/// Default floating dtype (set_default_dtype); process-wide, guarded by the GIL.
TP_API Dtype default_float();
TP_API void set_default_float(Dtype d);

/// Folds operands into a result type with PyTorch's three ranks: dimensioned, 0-d, Python number.
class Promotion {
 public:
  void add(Dtype d, bool zero_dim, bool wrapped_number) {
    Slot& s = slots_[wrapped_number ? 2 : zero_dim ? 1 : 0];
    s.dtype = s.used ? (s.dtype == d ? d : promote_types(s.dtype, d)) : d;
    s.used = true;
  }
  TP_API Dtype result() const;

 private:
  struct Slot {
    Dtype dtype = Dtype::Bool;
    bool used = false;
  };
  Slot slots_[3];
};

}  // namespace tp
