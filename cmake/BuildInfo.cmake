# What op libraries built outside must know of this build: compiler, flags that decide the ABI, instruction sets, where the
# headers are. Written twice: into the build tree, whose headers are the sources, and for the wheel, which brings its own.
set(TP_BUILD_ISAS "baseline")
if("TP_HAVE_AVX2=1" IN_LIST TP_KERNEL_DEFINITIONS)
  string(APPEND TP_BUILD_ISAS "\", \"avx2")
endif()
if("TP_HAVE_AVX512=1" IN_LIST TP_KERNEL_DEFINITIONS)
  string(APPEND TP_BUILD_ISAS "\", \"avx512")
endif()
list(JOIN TP_INCLUDE_ROOTS "\", \"" TP_BUILD_INCLUDES)
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.json.in ${TP_SITE_DIR}/tensorplay/_build.json @ONLY)
set(TP_BUILD_INCLUDES "include")
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.json.in ${CMAKE_BINARY_DIR}/installed/_build.json @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/installed/_build.json DESTINATION tensorplay)
