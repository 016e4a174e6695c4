# What `cmake --install` puts in place: the program, the libraries with their public headers, and what
# find_package(sluice) needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(SLUICE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
set(SLUICE_LIBRARIES sluice_core sluice_torch sluice_mpi)
if(TARGET sluice_loop)
  list(APPEND SLUICE_LIBRARIES sluice_loop)
  set_target_properties(sluice_loop PROPERTIES EXPORT_NAME loop)
  target_include_directories(sluice_loop PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endif()

# LibTorch may be anywhere.
set_target_properties(sluice PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS sluice)
install(TARGETS ${SLUICE_LIBRARIES} EXPORT sluice_targets)
install(DIRECTORY include/sluice TYPE INCLUDE)
install(EXPORT sluice_targets NAMESPACE sluice:: DESTINATION ${SLUICE_PACKAGE_DIR})

configure_package_config_file(cmake/sluiceConfig.cmake.in sluiceConfig.cmake
  INSTALL_DESTINATION ${SLUICE_PACKAGE_DIR})
write_basic_package_version_file(sluiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sluiceConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake DESTINATION ${SLUICE_PACKAGE_DIR})
