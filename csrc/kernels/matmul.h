// Kernels of matrix products: every rank case of matmul, its named relatives, and linear. Knows shapes, dtypes and
// promotion; the products themselves are gemm.h's.
#pragma once
#include "core/op_schema.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: matmul
TP_API Storage matmul(const OpSchema& op, const Storage& input, const Storage& other);
// kernel: mm
TP_API Storage mm(const OpSchema& op, const Storage& input, const Storage& mat2);
// kernel: bmm
TP_API Storage bmm(const OpSchema& op, const Storage& input, const Storage& mat2);
// kernel: mv
TP_API Storage mv(const OpSchema& op, const Storage& input, const Storage& vec);
// kernel: dot
TP_API Storage dot(const OpSchema& op, const Storage& input, const Storage& tensor);
// kernel: vdot (internal)
TP_API Storage vdot(const OpSchema& op, const Storage& input, const Storage& tensor);
// kernel: addmm
TP_API Storage addmm(const OpSchema& op, const Storage& input, const Storage& mat1, const Storage& mat2,
                     const Scalar& beta, const Scalar& alpha);
// kernel: addmv (internal)
TP_API Storage addmv(const OpSchema& op, const Storage& input, const Storage& mat, const Storage& vec,
                     const Scalar& beta, const Scalar& alpha);
// kernel: addr (internal)
TP_API Storage addr(const OpSchema& op, const Storage& input, const Storage& vec1, const Storage& vec2,
                    const Scalar& beta, const Scalar& alpha);
// kernel: baddbmm (internal)
TP_API Storage baddbmm(const OpSchema& op, const Storage& input, const Storage& batch1, const Storage& batch2,
                       const Scalar& beta, const Scalar& alpha);
// kernel: addbmm (internal)
TP_API Storage addbmm(const OpSchema& op, const Storage& input, const Storage& batch1, const Storage& batch2,
                      const Scalar& beta, const Scalar& alpha);
// kernel: linear
TP_API Storage linear(const OpSchema& op, const Storage& input, const Storage& weight, const Storage& bias);

}  // namespace tp::kernels
