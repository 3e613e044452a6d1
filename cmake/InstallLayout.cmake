# What the wheel holds beside the Python files: the two binaries, OpenBLAS, the headers that op packs compile against,
# the stubs, and the ops that `tensorplay.codegen` knows.
install(TARGETS _C LIBRARY DESTINATION tensorplay)
install(TARGETS tensorplay LIBRARY DESTINATION tensorplay/lib)
install(PROGRAMS ${TP_OPENBLAS_LIBRARY} DESTINATION tensorplay/lib)
if(CMAKE_STRIP)
  # Symbols that no linker needs, and on Linux the tables for unwinding: no exception passes C and Fortran. 2.8 MB, packed 0.5.
  set(TP_STRIP ${CMAKE_STRIP} --strip-unneeded)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    list(APPEND TP_STRIP --remove-section=.eh_frame --remove-section=.eh_frame_hdr)
  endif()
  list(JOIN TP_STRIP " " TP_STRIP)
  install(CODE "execute_process(COMMAND ${TP_STRIP}
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/tensorplay/lib/${TP_OPENBLAS_NAME}\" ERROR_QUIET)")
endif()

foreach(room core kernels autograd ops transforms)
  # Without what kernels share among themselves: no header that declares something for others includes it.
  install(DIRECTORY csrc/${room} DESTINATION tensorplay/include FILES_MATCHING PATTERN "*.h"
    PATTERN "isa" EXCLUDE
    REGEX "/(attention|conv|conv_direct|distance|fft|index|norm|pool|random|reduce|scan|softmax|sort)_table\\.h$" EXCLUDE
    REGEX "/(index|linalg|norm)_support\\.h$" EXCLUDE
    REGEX "/(vecmath_pieces|(conv|fft|pool)_plan)\\.h$" EXCLUDE)
endforeach()
foreach(header args objects op_library python_ops)
  install(FILES csrc/python/${header}.h DESTINATION tensorplay/include/python)
endforeach()
install(DIRECTORY generated/cpp/ops DESTINATION tensorplay/include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY generated/stubs/ DESTINATION tensorplay FILES_MATCHING PATTERN "*.pyi")
install(FILES ops.yaml DESTINATION tensorplay/codegen)
# The model of those ops, read once here: a first define_op would need ten times as long to read the entries.
install(CODE "execute_process(
  COMMAND \"${Python_EXECUTABLE}\" -c \"from pathlib import Path; from codegen.base import ship; ship(Path('${CMAKE_BINARY_DIR}/installed/model.pickle.xz'))\"
  WORKING_DIRECTORY \"${CMAKE_CURRENT_SOURCE_DIR}\" COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL \"${CMAKE_BINARY_DIR}/installed/model.pickle.xz\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/tensorplay/codegen\")")
