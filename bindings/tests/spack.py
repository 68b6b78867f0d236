# SPDX-License-Identifier: Apache-2.0 OR MIT
"""spack.py ROOT FOLDER: runs the Spack recipe without Spack, which cannot be had in CI.

Modules of the names that the recipe imports record its directives. What its build system would do with CMake is done here, for each value of its
variant; then a program is compiled by pkg-config and run. The recipe is imported as Spack 0.x and as Spack 1.x offer CMakePackage.
"""
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types

root, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:])
path = root / "packaging/spack/packages/firsttouch/package.py"


class CMakePackage:
    """What Spack's class offers to a recipe, as far as this one asks for it."""

    generator, build_type, root_cmakelists_dir = "Unix Makefiles", "Release", "."

    def __init__(self, directives, chosen):
        self.directives, self.chosen = directives, chosen

    def define_from_variant(self, name, variant):
        assert variant in self.directives["variant"], f"the recipe has no variant {variant}"
        return f"-D{name}:BOOL={'ON' if self.chosen[variant] else 'OFF'}"

    def define(self, name, value):
        return f"-D{name}:STRING={value}"

    def cmake_args(self):
        return []


def load(is_1):
    """The recipe's class and its directives by name: the first argument of each, and its others."""
    directives = {name: {} for name in ("version", "variant", "depends_on", "conflicts", "license")}
    package = types.ModuleType("spack.package")
    for name, found in directives.items():
        setattr(package, name, lambda first, *_, found=found, **options: found.__setitem__(first, options))
    modules = {"spack": types.ModuleType("spack"), "spack.package": package}
    if is_1:
        for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack_repo.builtin.build_systems.cmake"):
            modules[name] = types.ModuleType(name)
        modules["spack_repo.builtin.build_systems.cmake"].CMakePackage = CMakePackage
    else:
        package.CMakePackage = CMakePackage
    sys.modules.update(modules)
    spec = importlib.util.spec_from_file_location("recipe", path)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    for name in modules:
        del sys.modules[name]
    return recipe.Firsttouch, directives


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})
    said = done.stdout + done.stderr
    if done.returncode != 0 or "not used by the project" in said:
        sys.exit(f"{command}: status {done.returncode}\n{said}")
    return done.stdout


def install(recipe, directives, chosen):
    package = recipe(directives, chosen)
    name = "-".join(f"{variant}-{value}" for variant, value in chosen.items())
    build, prefix = folder / f"build-{name}", folder / f"prefix-{name}"
    run("cmake", "-S", root / package.root_cmakelists_dir, "-B", build, "-G", package.generator, f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DCMAKE_BUILD_TYPE={package.build_type}", *package.cmake_args())
    run("cmake", "--build", build, "-j2")
    run("cmake", "--install", build)
    return prefix


def check(recipe, directives):
    assert recipe.git == root.as_uri(), f"the recipe builds {recipe.git}, not {root.as_uri()}"
    licence = tomllib.loads((root / "bindings/rust/Cargo.toml").read_text())["package"]["license"]
    assert list(directives["license"]) == [licence], f"licence {directives['license']}, not {licence}"
    least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (root / recipe.root_cmakelists_dir / "CMakeLists.txt").read_text())[1]
    assert f"cmake@{least}:" in directives["depends_on"], f"CMake {least} is needed, but the recipe depends on {list(directives['depends_on'])}"
    assert directives["version"] and all("branch" in options or "tag" in options for options in directives["version"].values()), directives["version"]
    assert (root / "packaging/spack/repo.yaml").read_text().startswith("repo:"), "repo.yaml"


shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
recipe, directives = load(is_1=False)
newer, directives_of_newer = load(is_1=True)
assert issubclass(recipe, CMakePackage) and issubclass(newer, CMakePackage) and directives == directives_of_newer
check(recipe, directives)
assert list(directives["variant"]) == ["shared"], "another variant needs to be built here"
for is_shared in (True, False):
    prefix = install(recipe, directives, {"shared": is_shared})
    (library,) = {file.parent for file in prefix.glob("lib*/libfirsttouch.*")}
    for file in ("libfirsttouch.so", "libfirsttouch.a"):
        assert (library / file).exists() == (is_shared or file.endswith(".a")), f"{file} with shared={is_shared}"
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert (prefix / "share/licenses/firsttouch" / licence).is_file(), licence
    flags = run("pkg-config", "--cflags", "--libs", *([] if is_shared else ["--static"]), "firsttouch", PKG_CONFIG_PATH=str(library / "pkgconfig"))
    program = folder / "consumer"
    run("gcc", root / "packaging/conan/test_package/consumer.c", "-o", program, *shlex.split(flags), f"-Wl,-rpath,{library}")
    run(program)
