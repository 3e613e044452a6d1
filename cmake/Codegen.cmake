# Development builds run the generator while configuring: an edit of ops.yaml or of codegen/ makes the build configure
# again, the generator rewrites only what changed, and the globs that follow see new and removed files.
if(TENSORPLAY_CODEGEN)
  file(GLOB_RECURSE TP_CODEGEN_INPUTS CONFIGURE_DEPENDS codegen/*.py codegen/*.jinja codegen/*.j2)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TP_CODEGEN_INPUTS} ops.yaml)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m codegen write
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "`python -m codegen write` failed; its errors stand above")
  endif()
endif()
