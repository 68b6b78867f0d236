# SPDX-License-Identifier: Apache-2.0 OR MIT
"""libfirsttouch for Spack: `spack repo add packaging/spack`, then `spack install firsttouch`.

The recipe builds the checkout that it lies in, by git. A release needs `url` and `version(..., sha256=...)` instead.
"""
import pathlib

from spack.package import *

try:  # Spack 1.0 and newer; in older versions spack.package has it.
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Firsttouch(CMakePackage):
    """Places memory on NUMA nodes in the source of a program, and verifies where it is."""

    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    variant("shared", default=True, description="Build the shared library beside the static one")

    depends_on("c", type="build")
    depends_on("cmake@3.16:", type="build")

    conflicts("platform=darwin", msg="libfirsttouch calls Linux")
    conflicts("platform=windows", msg="libfirsttouch calls Linux")

    root_cmakelists_dir = "packaging"

    def cmake_args(self):
        return [self.define_from_variant("BUILD_SHARED_LIBS", "shared")]
