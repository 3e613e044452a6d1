// Discrete Fourier transforms over any dimensions. Integers become the default float, reals their complex type; 16-bit
// floats are refused. `n` and `s` cut or pad with zeros before the transform; norm: "backward" (also None), "forward", "ortho".
#pragma once
#include <optional>
#include <string_view>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: fft_fft
TP_API Storage fft_fft(const OpSchema& op, const Storage& input, std::optional<std::int64_t> n, std::int64_t dim,
                       std::optional<std::string_view> norm);
// kernel: fft_ifft
TP_API Storage fft_ifft(const OpSchema& op, const Storage& input, std::optional<std::int64_t> n, std::int64_t dim,
                        std::optional<std::string_view> norm);
/// Of real input, the half spectrum 0 ... n / 2.
// kernel: fft_rfft
TP_API Storage fft_rfft(const OpSchema& op, const Storage& input, std::optional<std::int64_t> n, std::int64_t dim,
                        std::optional<std::string_view> norm);
/// From a half spectrum; imaginary parts that a real result cannot have are left unread.
// kernel: fft_irfft
TP_API Storage fft_irfft(const OpSchema& op, const Storage& input, std::optional<std::int64_t> n, std::int64_t dim,
                         std::optional<std::string_view> norm);
// kernel: fft_hfft
TP_API Storage fft_hfft(const OpSchema& op, const Storage& input, std::optional<std::int64_t> n, std::int64_t dim,
                        std::optional<std::string_view> norm);
// kernel: fft_ihfft
TP_API Storage fft_ihfft(const OpSchema& op, const Storage& input, std::optional<std::int64_t> n, std::int64_t dim,
                         std::optional<std::string_view> norm);

// Several dimensions: without `dim` the last len(s), or all.
// kernel: fft_fftn
TP_API Storage fft_fftn(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                        const std::optional<Dims>& dim, std::optional<std::string_view> norm);
// kernel: fft_ifftn
TP_API Storage fft_ifftn(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                         const std::optional<Dims>& dim, std::optional<std::string_view> norm);
// kernel: fft_rfftn
TP_API Storage fft_rfftn(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                         const std::optional<Dims>& dim, std::optional<std::string_view> norm);
// kernel: fft_irfftn
TP_API Storage fft_irfftn(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                          const std::optional<Dims>& dim, std::optional<std::string_view> norm);
// kernel: fft_hfftn
TP_API Storage fft_hfftn(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                         const std::optional<Dims>& dim, std::optional<std::string_view> norm);
// kernel: fft_ihfftn
TP_API Storage fft_ihfftn(const OpSchema& op, const Storage& input, const std::optional<Dims>& s,
                          const std::optional<Dims>& dim, std::optional<std::string_view> norm);

/// Every dimension cut at its end, or padded with zeros, to `size`.
// kernel: fit_size
TP_API Storage fit_size(const OpSchema& op, const Storage& input, const Dims& size);

}  // namespace tp::kernels
