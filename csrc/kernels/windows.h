// Factories of signal processing: window functions and the frequencies of a transform.
#pragma once
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// Frequencies k / (n d), the negative ones after the others; and the non-negative half alone.
// kernel: fftfreq
TP_API Storage fftfreq(const OpSchema& op, std::int64_t n, double d, std::optional<Dtype> dtype);
// kernel: rfftfreq
TP_API Storage rfftfreq(const OpSchema& op, std::int64_t n, double d, std::optional<Dtype> dtype);

// Windows of n points: symmetric, or the first n of a symmetric one of n + 1 where `periodic`.
// kernel: bartlett_window
TP_API Storage bartlett_window(const OpSchema& op, std::int64_t window_length, bool periodic,
                               std::optional<Dtype> dtype);
// kernel: blackman_window
TP_API Storage blackman_window(const OpSchema& op, std::int64_t window_length, bool periodic,
                               std::optional<Dtype> dtype);
/// alpha - beta cos(...)
// kernel: hamming_window
TP_API Storage hamming_window(const OpSchema& op, std::int64_t window_length, bool periodic, double alpha, double beta,
                              std::optional<Dtype> dtype);
// kernel: hann_window
TP_API Storage hann_window(const OpSchema& op, std::int64_t window_length, bool periodic, std::optional<Dtype> dtype);
// kernel: kaiser_window
TP_API Storage kaiser_window(const OpSchema& op, std::int64_t window_length, bool periodic, double beta,
                             std::optional<Dtype> dtype);

}  // namespace tp::kernels
