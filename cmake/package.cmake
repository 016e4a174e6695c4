# Debian packages, one for each component of cmake/install.cmake; scripts/package makes them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Sluice authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Data-parallel training of neural networks on slow networks")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "Sluice decides which gradients pass a slow network first. It trains on threads and on several machines
with MPI, and simulates what a way to synchronise would cost on a cluster.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME sluice)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# Without it LibTorch's matrix products take ten times as long.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libopenblas0-pthread | libopenblas0")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "openmpi-bin, iproute2, dataset-fashion-mnist")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libsluice-dev")

# The packages that find_package(sluice) looks for in turn.
set(SLUICE_DEVELOPMENT_PACKAGES libfmt-dev libtomlplusplus-dev zlib1g-dev)
if(SLUICE_IMAGES)
  list(APPEND SLUICE_DEVELOPMENT_PACKAGES libjpeg-dev libpng-dev)
endif()
if(SLUICE_HAS_TORCH)
  list(APPEND SLUICE_DEVELOPMENT_PACKAGES libtorch-dev)
endif()
if(SLUICE_HAS_MPI)
  list(APPEND SLUICE_DEVELOPMENT_PACKAGES libopenmpi-dev)
endif()
list(JOIN SLUICE_DEVELOPMENT_PACKAGES ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "The libraries and headers of Sluice, for C++ programs with a training loop of their own.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsluice-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
if(SLUICE_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Sluice for PyTorch scripts, with Horovod's names: sluice.torch.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-sluice)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  # The module is for one version of Python.
  math(EXPR SLUICE_NEXT_MINOR "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${SLUICE_NEXT_MINOR}), python3-torch")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "openmpi-bin, sluice")
endif()
include(CPack)
