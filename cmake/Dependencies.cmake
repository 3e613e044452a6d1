# Finds Python, pybind11 and the OpenBLAS wheel. Asks the packages themselves where they live, so that a plain
# `cmake` run finds what a pip build finds.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(Threads REQUIRED)

function(tp_ask_python result expression package)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import ${package}; print(${expression})"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${Python_EXECUTABLE} has no package '${package}': run `make deps`, or pip install it")
  endif()
  set(${result} ${answer} PARENT_SCOPE)
endfunction()

tp_ask_python(TP_PYBIND11_DIR "pybind11.get_cmake_dir()" pybind11)
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 3.1 CONFIG REQUIRED HINTS ${TP_PYBIND11_DIR})

tp_ask_python(TP_OPENBLAS_LIB_DIR "scipy_openblas32.get_lib_dir()" scipy_openblas32)
find_package(OpenBLAS CONFIG REQUIRED HINTS ${TP_OPENBLAS_LIB_DIR}/cmake/openblas NO_DEFAULT_PATH)
get_target_property(TP_OPENBLAS_LIBRARY OpenBLAS::OpenBLAS IMPORTED_LOCATION)

# The wheel carries the library beside ours; the build tree points at it.
get_filename_component(TP_OPENBLAS_NAME ${TP_OPENBLAS_LIBRARY} NAME)
file(MAKE_DIRECTORY ${TP_SITE_DIR}/tensorplay/lib)
file(CREATE_LINK ${TP_OPENBLAS_LIBRARY} ${TP_SITE_DIR}/tensorplay/lib/${TP_OPENBLAS_NAME} SYMBOLIC COPY_ON_ERROR)
