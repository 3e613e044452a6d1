# The loops (csrc/kernels/isa, generated/cpp/kernels) are compiled once per instruction set, each time in a namespace
# named by TP_ISA; csrc/kernels chooses between them when the library loads.
# Sets TP_KERNEL_OBJECTS, in link order, and TP_KERNEL_DEFINITIONS for the code that chooses.
file(GLOB TP_ISA_SOURCES CONFIGURE_DEPENDS csrc/kernels/isa/*.cpp generated/cpp/kernels/*.cpp)

# Integer arithmetic of kernels wraps, as NumPy's does: said to the compiler, to which an overflow means anything otherwise.
set(TP_KERNEL_ARITHMETIC -fwrapv)
file(GLOB TP_KERNEL_SOURCES CONFIGURE_DEPENDS csrc/kernels/*.cpp)
set_source_files_properties(${TP_KERNEL_SOURCES} PROPERTIES COMPILE_OPTIONS "${TP_KERNEL_ARITHMETIC}")

# Loops of one step an element gain nothing from what -O3 adds to the vectoriser: copies of remainders and of whole loops.
set(TP_SHORT_LOOPS ${TP_ISA_SOURCES})
list(FILTER TP_SHORT_LOOPS INCLUDE REGEX "/(comparison|logical|ternary|binary_[0-9]+|isa/fft)\\.cpp$")
set_source_files_properties(${TP_SHORT_LOOPS} PROPERTIES COMPILE_OPTIONS
  "$<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,kernels_baseline>>:-O2;-ftree-vectorize;-fvect-cost-model=dynamic>")

# What these ask of their arguments they may ask in the loop: a copy of the loop for each answer gains nothing.
set(TP_ASKING_LOOPS ${TP_ISA_SOURCES})
list(FILTER TP_ASKING_LOOPS INCLUDE REGEX "/isa/(reduce|softmax)\\.cpp$")
set_source_files_properties(${TP_ASKING_LOOPS} PROPERTIES COMPILE_OPTIONS
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,kernels_baseline>>>:-fno-unswitch-loops>")

set(TP_KERNEL_OBJECTS "")
set(TP_KERNEL_DEFINITIONS "")

function(tp_add_kernels isa)
  set(target kernels_${isa})
  add_library(${target} OBJECT ${TP_ISA_SOURCES})
  tp_common_options(${target})
  target_compile_definitions(${target} PRIVATE TP_BUILDING TP_ISA=${isa} ${TP_KERNEL_DEFINITIONS})
  target_compile_options(${target} PRIVATE
    -O3 -fno-math-errno -fno-trapping-math ${TP_KERNEL_ARITHMETIC} -ftls-model=initial-exec ${ARGN}
    # Nothing in them throws or calls what does: no tables for unwinding.
    -fno-exceptions -fno-unwind-tables -fno-asynchronous-unwind-tables)
  target_include_directories(${target} PRIVATE ${TP_INCLUDE_ROOTS})
  tp_precompile(${target})
  set(TP_KERNEL_OBJECTS ${TP_KERNEL_OBJECTS} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND NOT TENSORPLAY_PORTABLE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=x86-64-v3 TP_COMPILER_HAS_V3)
  check_cxx_compiler_flag(-march=x86-64-v4 TP_COMPILER_HAS_V4)
  if(TP_COMPILER_HAS_V3)
    list(APPEND TP_KERNEL_DEFINITIONS TP_HAVE_AVX2=1)
  endif()
  if(TP_COMPILER_HAS_V4)
    list(APPEND TP_KERNEL_DEFINITIONS TP_HAVE_AVX512=1)
  endif()
endif()

# Beside AVX2 the baseline serves processors older than 2013 alone: scalar loops there save 0.7 MB of code and a minute of
# compiling. Where the baseline is all there is, it is vectorised.
if("TP_HAVE_AVX2=1" IN_LIST TP_KERNEL_DEFINITIONS)
  tp_add_kernels(baseline -Os -DTP_SCALAR_LOOPS)
else()
  tp_add_kernels(baseline)
endif()
if("TP_HAVE_AVX2=1" IN_LIST TP_KERNEL_DEFINITIONS)
  tp_add_kernels(avx2 -march=x86-64-v3)
endif()
if("TP_HAVE_AVX512=1" IN_LIST TP_KERNEL_DEFINITIONS)
  tp_add_kernels(avx512 -march=x86-64-v4 -mprefer-vector-width=512)
endif()
