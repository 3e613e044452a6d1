// Declarations as csrc/kernels has them.
// kernel: rand_like
