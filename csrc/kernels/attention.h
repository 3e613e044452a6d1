// Kernels of scaled dot-product attention: softmax(scale * query @ key^T + mask) @ value in blocks, without the matrix of
// scores. Rows whose every key is masked give zeros.
#pragma once
#include <array>
#include <optional>

#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/random.h"

namespace tp::kernels {

/// (out, logsumexp of the scores, random state: seed and first block of the dropped places). query [..., L, E],
/// key [..., S, E], value [..., S, Ev]; attn_mask broadcasts to [..., L, S]: bool (true takes part) or floating (added).
/// is_causal lets query i see keys 0 to i. Without scale: 1 / sqrt(E).
// kernel: native_attention (internal)
TP_API std::array<Storage, 3> native_attention(const OpSchema& op, const Storage& query, const Storage& key,
                                               const Storage& value, const Storage& attn_mask, double dropout_p,
                                               bool is_causal, std::optional<double> scale, Generator* generator);
/// Gradients of (query, key, value, attn_mask); the last with the sizes [..., L, S] of the scores, and undefined unless
/// wanted.
// kernel: native_attention_backward (internal)
TP_API std::array<Storage, 4> native_attention_backward(const OpSchema& op, const Storage& g, const Storage& query,
                                                        const Storage& key, const Storage& value,
                                                        const Storage& attn_mask, const Storage& out,
                                                        const Storage& logsumexp, const Storage& random_state,
                                                        double dropout_p, bool is_causal, std::optional<double> scale,
                                                        bool want_mask);

}  // namespace tp::kernels
