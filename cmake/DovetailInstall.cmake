# What `cmake --install` installs, by components:
#
#   runtime      libdovetail.so and its plug-ins
#   compiler     libdovetail-compiler.so
#   tools        the programs `dovetail` and `dovetail-run`
#   development  headers, and the packages for CMake and pkg-config
#
# Folders are `lib`, `bin` and `include` below the prefix, and all files find each other relative to themselves.

include(CMakePackageConfigHelpers)
set(packages lib/cmake/Dovetail)

# Installations may be moved: libraries are looked for beside the files that need them. In the build, too: CMake fills a
# path that is shorter there with empty entries, which mean the current folder.
function(dovetail_find_beside)
  set_target_properties(${ARGN} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
endfunction()
dovetail_find_beside(DovetailShared dovetail-run)

install(TARGETS DovetailShared EXPORT DovetailRuntimeTargets
  LIBRARY DESTINATION lib COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION include)
get_property(plugins GLOBAL PROPERTY DOVETAIL_TRANSPORTS)
if(TARGET dovetail_cuda)
  list(APPEND plugins dovetail_cuda)
endif()
list(REMOVE_ITEM plugins dovetail_transport_sockets) # It is for tests.
foreach(plugin IN LISTS plugins)
  dovetail_find_beside(${plugin})
  install(TARGETS ${plugin} LIBRARY DESTINATION lib COMPONENT runtime)
  add_dependencies(DovetailPrograms ${plugin})
endforeach()
install(TARGETS dovetail-run RUNTIME DESTINATION bin COMPONENT tools)
install(FILES "${PROJECT_SOURCE_DIR}/runtime/include/dovetail/dovetail.h"
  "${PROJECT_SOURCE_DIR}/runtime/include/dovetail/dovetail.hpp"
  DESTINATION include/dovetail COMPONENT development)
# Which these headers include.
install(FILES "${DLPACK_INCLUDE_DIR}/dlpack/dlpack.h" DESTINATION include/dlpack COMPONENT development)
install(EXPORT DovetailRuntimeTargets NAMESPACE dovetail:: DESTINATION ${packages} COMPONENT development)

if(DOVETAIL_BUILD_COMPILER)
  dovetail_find_beside(DovetailCompiler dovetail)
  install(TARGETS DovetailCompiler EXPORT DovetailCompilerTargets
    LIBRARY DESTINATION lib COMPONENT compiler NAMELINK_COMPONENT development
    INCLUDES DESTINATION include)
  install(TARGETS dovetail RUNTIME DESTINATION bin COMPONENT tools)
  install(FILES "${PROJECT_SOURCE_DIR}/include/dovetail/compiler.h" DESTINATION include/dovetail COMPONENT development)
  install(EXPORT DovetailCompilerTargets NAMESPACE dovetail:: DESTINATION ${packages} COMPONENT development)
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/DovetailConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/DovetailConfig.cmake" INSTALL_DESTINATION ${packages})
# Until version 1.0 a minor version may change interfaces.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/DovetailConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/DovetailConfig.cmake" "${PROJECT_BINARY_DIR}/DovetailConfigVersion.cmake"
  DESTINATION ${packages} COMPONENT development)
configure_file("${PROJECT_SOURCE_DIR}/cmake/dovetail.pc.in" "${PROJECT_BINARY_DIR}/dovetail.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/dovetail.pc" DESTINATION lib/pkgconfig COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/dovetail COMPONENT runtime)
