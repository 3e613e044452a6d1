// Promotion tables and the default floating dtype.
#include "core/dtype.h"

#include "core/errors.h"

namespace tp {
namespace {
Dtype g_default_float = Dtype::F32;

int float_width(Dtype d) {
  return d == Dtype::F64 || d == Dtype::C128 ? 2 : d == Dtype::F32 || d == Dtype::C64 ? 1 : 0;
}

Dtype promote_integers(Dtype a, Dtype b) {
  if (is_signed(a) == is_signed(b)) return item_size(a) >= item_size(b) ? a : b;
  const Dtype s = is_signed(a) ? a : b;
  const Dtype u = is_signed(a) ? b : a;
  if (item_size(u) < item_size(s)) return s;
  switch (item_size(u)) {  // the next wider signed type holds both
    case 1: return Dtype::I16;
    case 2: return Dtype::I32;
    case 4: return Dtype::I64;
    default: return Dtype::F32;  // uint64 with a signed type has no common integer
  }
}

Dtype promote_floats(Dtype a, Dtype b) {
  if (a == b) return a;
  if (float_width(a) == 0 && float_width(b) == 0) return Dtype::F32;  // float16 with bfloat16
  return float_width(a) >= float_width(b) ? a : b;
}
}  // namespace

Dtype promote_types(Dtype a, Dtype b) {
  if (a == b) return a;
  const Category ca = category(a), cb = category(b);
  if (ca == Category::Bool) return b;
  if (cb == Category::Bool) return a;
  if (ca == Category::Complex || cb == Category::Complex) {
    const bool wide = float_width(a) == 2 || float_width(b) == 2;
    return wide ? Dtype::C128 : Dtype::C64;
  }
  if (ca == Category::Float && cb == Category::Float) return promote_floats(a, b);
  if (ca == Category::Float) return a;
  if (cb == Category::Float) return b;
  return promote_integers(a, b);
}

bool can_cast(Dtype from, Dtype to) { return category(from) <= category(to); }

Dtype default_float() { return g_default_float; }

void set_default_float(Dtype d) {
  if (!is_float(d)) type_error("set_default_dtype: only floating-point types are supported, got ", dtype_name(d));
  g_default_float = d;
}

Dtype Promotion::result() const {
  const auto combine = [](const Slot& higher, const Slot& lower, bool lower_is_number) -> Slot {
    if (!lower.used) return higher;
    Dtype low = lower.dtype;
    if (lower_is_number) {  // a Python number brings its category in the default width
      if (is_complex(low))
        low = complex_dtype(higher.used ? higher.dtype : default_float());
      else if (is_float(low))
        low = default_float();
    }
    if (!higher.used) return {low, true};
    if (category(higher.dtype) >= category(low)) return higher;
    if (is_complex(low) && category(higher.dtype) == Category::Float) return {complex_dtype(higher.dtype), true};
    return {low, true};
  };
  const Slot tensors = combine(slots_[0], slots_[1], false);
  return combine(tensors, slots_[2], true).dtype;
}

}  // namespace tp
