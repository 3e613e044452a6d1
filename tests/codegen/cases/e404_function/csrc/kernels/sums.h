// Declarations as csrc/kernels has them.
// kernel: sum_all
TP_API Storage sum_all(const OpSchema& op, const Storage& input);
// batch: rows
