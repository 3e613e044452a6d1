# Each tests/core/*.cpp is a program of its own, linked as an op pack links: against libtensorplay, without Python.
add_custom_target(cpp_tests)
file(GLOB TP_OP_HEADERS CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/generated/cpp generated/cpp/ops/*.h)
list(TRANSFORM TP_OP_HEADERS REPLACE "(.+)" "#include \"\\1\"\n")
string(JOIN "" TP_ALL_OPS ${TP_OP_HEADERS})
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/tests/include/all_ops.h CONTENT "${TP_ALL_OPS}")
file(GLOB TP_TEST_SOURCES CONFIGURE_DEPENDS tests/core/*.cpp)
foreach(source ${TP_TEST_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  add_dependencies(cpp_tests ${name})
  target_include_directories(${name} PRIVATE ${CMAKE_BINARY_DIR}/tests/include generated/cpp/tests)
  tp_common_options(${name})
  target_compile_definitions(${name} PRIVATE ${TP_KERNEL_DEFINITIONS})
  target_link_libraries(${name} PRIVATE tensorplay Threads::Threads)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
    INSTALL_RPATH "${TP_SITE_DIR}/tensorplay/lib")
endforeach()
