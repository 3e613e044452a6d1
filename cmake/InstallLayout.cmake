# What the wheel holds beside the Python files: the two binaries, OpenBLAS, the headers that op packs compile against,
# the stubs, and the ops that `tensorplay.codegen` knows.
install(TARGETS _C LIBRARY DESTINATION tensorplay)
install(TARGETS tensorplay LIBRARY DESTINATION tensorplay/lib)
install(PROGRAMS ${TP_OPENBLAS_LIBRARY} DESTINATION tensorplay/lib)

foreach(room core kernels autograd ops transforms)
  install(DIRECTORY csrc/${room} DESTINATION tensorplay/include FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY generated/cpp/ops DESTINATION tensorplay/include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY generated/stubs/ DESTINATION tensorplay FILES_MATCHING PATTERN "*.pyi")
install(FILES ops.yaml DESTINATION tensorplay/codegen)
