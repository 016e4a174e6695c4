# What `cmake --install` installs, in components that are also the Debian packages:
#   program      the program, its module for LibTorch, profiles, manual and completions
#   development  the libraries with their public headers, and what find_package(sluice) needs
#   python       the Python package, if SLUICE_PYTHON is on
include(CMakePackageConfigHelpers)

# LibTorch may be anywhere.
set_target_properties(sluice PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS sluice RUNTIME COMPONENT program)
if(SLUICE_HAS_TORCH)
  set_target_properties(sluice_torch_module PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS sluice_torch_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/sluice COMPONENT program)
endif()
install(DIRECTORY profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice COMPONENT program
  FILES_MATCHING PATTERN "*.json" PATTERN "*.toml" PATTERN "README.md")
install(DIRECTORY experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice COMPONENT program
  FILES_MATCHING PATTERN "*.toml" PATTERN "*.csv")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES ${SLUICE_DOCUMENTS_DIR}/sluice.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${SLUICE_DOCUMENTS_DIR}/sluice.bash COMPONENT program
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sluice)
install(FILES ${SLUICE_DOCUMENTS_DIR}/sluice.zsh COMPONENT program
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _sluice)
install(FILES ${SLUICE_DOCUMENTS_DIR}/sluice.fish COMPONENT program
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

set(SLUICE_LIBRARIES sluice_core sluice_mpi sluice_session sluice_exchange)
if(SLUICE_HAS_TORCH)
  list(APPEND SLUICE_LIBRARIES sluice_torch sluice_loop)
  set_target_properties(sluice_loop PROPERTIES EXPORT_NAME loop)
  target_include_directories(sluice_loop PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endif()
set_target_properties(${SLUICE_LIBRARIES} PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  DEFINE_SYMBOL "")  # static and shared libraries have the same objects
if(BUILD_SHARED_LIBS)  # the program and the libraries find each other
  set_target_properties(${SLUICE_LIBRARIES} PROPERTIES INSTALL_RPATH $ORIGIN INSTALL_RPATH_USE_LINK_PATH ON)
  set_target_properties(sluice PROPERTIES INSTALL_RPATH $ORIGIN/${SLUICE_LIBDIR_FROM_BINDIR})
endif()

# The program runs with shared libraries; static ones are only for building with them.
set(SLUICE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
install(TARGETS ${SLUICE_LIBRARIES} EXPORT sluice_targets
  LIBRARY COMPONENT program NAMELINK_COMPONENT development ARCHIVE COMPONENT development)
install(DIRECTORY include/sluice TYPE INCLUDE COMPONENT development)
install(EXPORT sluice_targets NAMESPACE sluice:: DESTINATION ${SLUICE_PACKAGE_DIR} COMPONENT development)

configure_package_config_file(cmake/sluiceConfig.cmake.in sluiceConfig.cmake
  INSTALL_DESTINATION ${SLUICE_PACKAGE_DIR})
write_basic_package_version_file(sluiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sluiceConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake
  DESTINATION ${SLUICE_PACKAGE_DIR} COMPONENT development)

if(SLUICE_PYTHON)
  # Where Debian's Python looks for packages.
  set(SLUICE_PYTHON_FOLDER lib/python3/dist-packages CACHE STRING "Where the Python package is installed")
  set_target_properties(sluice_python PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS sluice_python LIBRARY DESTINATION ${SLUICE_PYTHON_FOLDER}/sluice COMPONENT python)
  install(DIRECTORY python/sluice/ DESTINATION ${SLUICE_PYTHON_FOLDER}/sluice COMPONENT python
    FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
endif()
