# sluice_torch: learners on LibTorch, or the file that says there are none.
if(SLUICE_TORCH)
  find_package(Torch REQUIRED)
  file(GLOB_RECURSE SLUICE_TORCH_SOURCES CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/src/torch/*.cc)
  list(FILTER SLUICE_TORCH_SOURCES EXCLUDE REGEX "no_torch")
  add_library(sluice_torch STATIC ${SLUICE_TORCH_SOURCES})
  target_link_libraries(sluice_torch PUBLIC sluice_core PRIVATE ${TORCH_LIBRARIES})

  # sluice_loop: for programs with a training loop of their own.
  file(GLOB SLUICE_LOOP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/*.cc)
  add_library(sluice_loop STATIC ${SLUICE_LOOP_SOURCES})
  target_include_directories(sluice_loop PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(sluice_loop PUBLIC ${TORCH_LIBRARIES} PRIVATE sluice_torch sluice_mpi)

  foreach(target sluice_torch sluice_loop)
    target_compile_options(${target} PRIVATE ${SLUICE_COLD})
    target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
    # LibTorch's structures change their layout without NDEBUG, and its packages are built with it.
    # Newer ones also bring headers of an fmt of their own, whose library is not the one linked here.
    target_compile_definitions(${target} PRIVATE NDEBUG FMT_HEADER_ONLY)
  endforeach()
else()
  add_library(sluice_torch STATIC ${PROJECT_SOURCE_DIR}/src/torch/no_torch.cc)
  target_link_libraries(sluice_torch PUBLIC sluice_core)
endif()
