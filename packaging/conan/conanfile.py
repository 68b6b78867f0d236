# SPDX-License-Identifier: Apache-2.0 OR MIT
"""libfirsttouch for Conan 2: `conan create packaging/conan`. Packs the checkout that it lies in."""
import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class FirsttouchConan(ConanFile):
    name = "firsttouch"
    description = "Places memory on NUMA nodes in the source of a program, and verifies where it is"
    license = "Apache-2.0 OR MIT"
    topics = ("numa", "memory", "allocator", "hpc")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    languages = "C"

    def set_version(self):
        header = pathlib.Path(self.recipe_folder, "../../native/library/include/firsttouch.h").read_text()
        self.version = ".".join(re.search(rf"FT_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        root = pathlib.Path(self.recipe_folder, "../..")
        for pattern in ("native/library/*.c", "native/library/*.h", "native/library/*.map", "bindings/cxx/*", "bindings/fortran/*.f90",
                        "packaging/CMakeLists.txt", "packaging/cmake/*", "packaging/*.in", "LICENSE-*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder, excludes="native/library/tests/*")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("libfirsttouch calls Linux")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.variables["FIRSTTOUCH_STATIC"] = not self.options.shared
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="packaging")
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package's own CMake files, which know the Fortran module too.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append("lib/cmake/firsttouch")
        self.cpp_info.set_property("pkg_config_name", "firsttouch")
        self.cpp_info.libs = ["firsttouch"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread"]
