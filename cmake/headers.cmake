# Libraries whose headers suffice. Where they are not installed, -DSLUICE_HEADERS=FOLDER says where their headers are.
set(SLUICE_HEADERS "" CACHE PATH "Headers of fmt, nlohmann-json and toml++, where they are not installed")

# The package with this target, or else this header in that folder.
function(sluice_find_headers package target header)
  find_package(${package} QUIET)
  if(TARGET ${target})
    return()
  endif()
  if(NOT SLUICE_HEADERS OR NOT EXISTS ${SLUICE_HEADERS}/${header})
    message(FATAL_ERROR "${package} is missing: scripts/packages installs it, or -DSLUICE_HEADERS=FOLDER with ${header}")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${SLUICE_HEADERS})
  target_compile_definitions(${target} INTERFACE ${ARGN})
endfunction()

sluice_find_headers(fmt fmt::fmt fmt/format.h FMT_HEADER_ONLY)
sluice_find_headers(nlohmann_json nlohmann_json::nlohmann_json nlohmann/json.hpp)
sluice_find_headers(tomlplusplus tomlplusplus::tomlplusplus toml++/toml.h)
