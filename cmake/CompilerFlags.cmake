# Flags shared by every target: language, optimisation, warnings, visibility, sanitizers, compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# -O2 everywhere; the kernels, where vectorisation pays, ask for -O3 themselves (Kernels.cmake).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Code that works for microseconds at least, or once: wrappers of ops with long kernels, rare batching rules, the module
# itself. A third to a half less to ship and to compile at -Os. The rest stays at -O2, where a call costs 10 to 50 ns less.
function(tp_small_code)
  list(FILTER ARGN INCLUDE REGEX "/generated/cpp/(ops|bind)/(composite|conv|fft|index_2|nn|random|scan|sort)|\
/csrc/transforms/(channels|loop|rules)|/csrc/kernels/(fft_plan|linalg_(factor|functions|indefinite|spectral)|windows)|\
/csrc/python/(func_support|graph_gc|module|node_type|op_|saved_hooks|transforms)")
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -Os)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# The build tree has the layout of the installed package under site/, so it can be imported without installing.
set(TP_SITE_DIR ${CMAKE_BINARY_DIR}/site)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
if(APPLE)
  set(TP_ORIGIN "@loader_path")
else()
  set(TP_ORIGIN "$ORIGIN")
endif()

set(TP_INCLUDE_ROOTS ${CMAKE_CURRENT_SOURCE_DIR}/csrc ${CMAKE_CURRENT_SOURCE_DIR}/generated/cpp)

# Paths below the source tree are hashed relative to it, so that a copy of the tree (demo, mutants) and a second build
# directory find what the first one compiled. The compiler's own list of headers spares a run of the preprocessor.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TP_CCACHE ccache)
  if(TP_CCACHE AND NOT DEFINED ENV{CCACHE_DISABLE})
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 ${TP_CCACHE})
  endif()
endif()

# Half of a file's time is reading headers. They are read once where no compiler cache is, which knows them by content;
# builds with a cache show whether a file includes what it uses.
function(tp_precompile target)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <limits>
      <memory> <numeric> <optional> <span> <string> <string_view> <unordered_map> <utility> <vector> ${ARGN})
  endif()
endfunction()

set(TP_SANITIZE_FLAGS "")
if(TENSORPLAY_SANITIZE)
  set(TP_SANITIZE_FLAGS -fsanitize=${TENSORPLAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined -g1)
endif()

# Hundreds of backward nodes have functions of the same code: one copy of each is kept, where the linker knows how (0.6 MB).
set(TP_FOLD "")
if(NOT APPLE AND NOT TENSORPLAY_SANITIZE)
  include(CheckLinkerFlag)
  foreach(linker gold lld)
    check_linker_flag(CXX "-fuse-ld=${linker};-Wl,--icf=safe" TP_${linker}_FOLDS)
    if(TP_${linker}_FOLDS)
      set(TP_FOLD -fuse-ld=${linker} -Wl,--icf=safe)
      break()
    endif()
  endforeach()
endif()

function(tp_common_options target)
  # Contraction would make a result depend on the instruction set that happens to run.
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -ffp-contract=off -ffunction-sections -fdata-sections ${TP_SANITIZE_FLAGS}
    # What a function does rarely stands at its end: elsewhere it needs tables for unwinding of its own.
    $<$<CXX_COMPILER_ID:GNU>:-fno-reorder-blocks-and-partition>)
  if(TENSORPLAY_PORTABLE)
    target_compile_definitions(${target} PRIVATE TP_PORTABLE)
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "OBJECT_LIBRARY")
    target_link_options(${target} PRIVATE ${TP_SANITIZE_FLAGS})
    if(NOT APPLE)
      target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,-O1 -Wl,--as-needed ${TP_FOLD}
        -Wl,-Bsymbolic-functions)  # no call inside a library takes the way round by its table
    endif()
  endif()
endfunction()
