# What the wheel holds beside the Python files: the two binaries, OpenBLAS, the headers that op packs compile against.
install(TARGETS _C LIBRARY DESTINATION tensorplay)
install(TARGETS tensorplay LIBRARY DESTINATION tensorplay/lib)
install(PROGRAMS ${TP_OPENBLAS_LIBRARY} DESTINATION tensorplay/lib)

foreach(room core kernels autograd ops)
  install(DIRECTORY csrc/${room} DESTINATION tensorplay/include FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY generated/cpp/ops DESTINATION tensorplay/include FILES_MATCHING PATTERN "*.h")
