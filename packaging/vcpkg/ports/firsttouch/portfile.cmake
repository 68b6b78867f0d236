# An overlay port that builds the checkout it lies in:
#     vcpkg install firsttouch --overlay-ports=packaging/vcpkg/ports
# A release needs vcpkg_from_github (or another archive with its hash) for SOURCE_PATH instead.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" static FIRSTTOUCH_STATIC)
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}/packaging"
    OPTIONS -DFIRSTTOUCH_STATIC=${FIRSTTOUCH_STATIC}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/firsttouch)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-APACHE" "${SOURCE_PATH}/LICENSE-MIT")
