# The targets that use LibTorch:
#   sluice_torch         all of it, for programs that link LibTorch themselves
#   sluice_torch_module  the same as a file that the program `sluice` opens when a command needs it
#   sluice_torch_opener  the program's side of it; without LibTorch there is nothing to open
#   sluice_loop          for programs with a training loop of their own
sluice_find_optional(SLUICE_TORCH SLUICE_HAS_TORCH Torch)

set(SLUICE_TORCH_FOLDER src/torch)
set(SLUICE_MODULES_DIR modules)  # beside the program in the build folder
# Program and module check with this that they belong together.
set(SLUICE_BUILD_ID "${PROJECT_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
if(SLUICE_SANITIZE)
  string(APPEND SLUICE_BUILD_ID ", ${SLUICE_SANITIZE}")
endif()

add_library(sluice_torch_opener STATIC ${SLUICE_TORCH_FOLDER}/module_opener.cc)
target_link_libraries(sluice_torch_opener PUBLIC sluice_core PRIVATE ${CMAKE_DL_LIBS})
file(RELATIVE_PATH SLUICE_LIBDIR_FROM_BINDIR ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
target_compile_definitions(sluice_torch_opener PRIVATE SLUICE_BUILD_ID="${SLUICE_BUILD_ID}"
  SLUICE_TORCH_MODULE="sluice_torch${CMAKE_SHARED_MODULE_SUFFIX}"
  SLUICE_MODULE_FOLDERS="${SLUICE_MODULES_DIR}","${SLUICE_LIBDIR_FROM_BINDIR}/sluice"
  SLUICE_HAS_TORCH=$<BOOL:${SLUICE_HAS_TORCH}>)

# A target whose sources include LibTorch's headers.
function(sluice_use_torch target)
  target_compile_options(${target} PRIVATE ${SLUICE_COLD})
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  # Without NDEBUG LibTorch's structures have a different layout, and its packages are built with
  # it. Newer versions also bring the headers of their own fmt, whose library is not the one linked
  # here.
  target_compile_definitions(${target} PRIVATE NDEBUG FMT_HEADER_ONLY)
endfunction()

if(SLUICE_HAS_TORCH)
  sluice_sources(SLUICE_TORCH_SOURCES torch torch/models torch/profiling)
  list(FILTER SLUICE_TORCH_SOURCES EXCLUDE REGEX "^${SLUICE_TORCH_FOLDER}/module(_opener)?[.]cc$")
  add_library(sluice_torch ${SLUICE_TORCH_SOURCES})
  target_link_libraries(sluice_torch PUBLIC sluice_core PRIVATE ${TORCH_LIBRARIES})
  sluice_use_torch(sluice_torch)

  # The module takes what it needs of the core from the program, so that there is one copy of it.
  # Both define the functions of torch_learner.h: each calls its own.
  add_library(sluice_torch_module MODULE ${SLUICE_TORCH_FOLDER}/module.cc $<TARGET_OBJECTS:sluice_torch>)
  set_target_properties(sluice_torch_module PROPERTIES
    PREFIX "" OUTPUT_NAME sluice_torch LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${SLUICE_MODULES_DIR})
  target_include_directories(sluice_torch_module PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(sluice_torch_module PRIVATE SLUICE_BUILD_ID="${SLUICE_BUILD_ID}")
  target_link_libraries(sluice_torch_module PRIVATE sluice_flags ${TORCH_LIBRARIES})
  target_link_options(sluice_torch_module PRIVATE -Wl,-Bsymbolic-functions)
  sluice_use_torch(sluice_torch_module)

  sluice_sources(SLUICE_LOOP_SOURCES api)
  add_library(sluice_loop ${SLUICE_LOOP_SOURCES})
  target_include_directories(sluice_loop PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(sluice_loop PUBLIC ${TORCH_LIBRARIES} PRIVATE sluice_exchange sluice_torch)
  sluice_use_torch(sluice_loop)
  # Its header includes LibTorch's: see above.
  target_compile_definitions(sluice_loop INTERFACE NDEBUG)
endif()
