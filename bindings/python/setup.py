# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compiles libfirsttouch from native/ into the wheel. The rest of the package is described in pyproject.toml.

CC and CFLAGS choose the compiler. The library uses no Python API, so one wheel serves all versions of Python.
"""
import os
import pathlib
import shlex
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools below 70.1
    from wheel.bdist_wheel import bdist_wheel

NATIVE = pathlib.Path("native")


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        sources = sorted(str(path) for path in NATIVE.glob("*.c"))
        if not sources:
            sys.exit(f"cannot build libfirsttouch: no C files in {NATIVE.resolve()}; build from the repository or from an sdist")
        library = pathlib.Path(self.build_lib, "firsttouch", "libfirsttouch.so")
        library.parent.mkdir(parents=True, exist_ok=True)
        command = [
            *shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
            *shlex.split(os.environ.get("CFLAGS", "")), f"-I{NATIVE / 'include'}", *sources, "-Wl,-soname,libfirsttouch.so.1",
            f"-Wl,--version-script={NATIVE / 'symbols.map'}", "-Wl,-Bsymbolic",
            "-o", str(library),
        ]
        self.announce(shlex.join(command), level=2)
        try:
            subprocess.run(command, check=True)
        except OSError as error:
            sys.exit(f"cannot compile libfirsttouch with {command[0]}: {error.strerror}; install gcc or clang, or set CC")
        except subprocess.CalledProcessError as error:
            sys.exit(f"cannot compile libfirsttouch: {shlex.join(command)} ended with status {error.returncode}")


class PlatformWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        # The library is loaded by ctypes: any Python 3, this platform.
        return "py3", "none", super().get_tag()[2]


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=BinaryDistribution)
