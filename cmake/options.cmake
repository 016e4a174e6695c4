# An optional dependency: AUTO uses it if it is found, ON makes its absence an error.
function(sluice_add_optional name what)
  set(${name} AUTO CACHE STRING "${what}: AUTO, ON or OFF")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
endfunction()

# Finds the package of such an option by the further arguments of find_package(); sets `result` to ON or OFF.
macro(sluice_find_optional name result package)
  if("${${name}}" STREQUAL "AUTO")
    find_package(${package} ${ARGN})
  elseif(${name})
    find_package(${package} REQUIRED ${ARGN})
  endif()
  if(${name} AND ${package}_FOUND)
    set(${result} ON)
  else()
    set(${result} OFF)
  endif()
endmacro()
