# Sets `result` to the sources of these folders of src/, without those of folders below them. Paths are relative to
# the project, so that no pattern depends on where the checkout lies.
function(sluice_sources result)
  set(sources)
  foreach(folder IN LISTS ARGN)
    file(GLOB found RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()
