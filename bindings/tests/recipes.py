# SPDX-License-Identifier: Apache-2.0 OR MIT
"""recipes.py ROOT: every package has the version of firsttouch.h."""
import json
import pathlib
import re
import sys
import tomllib

root = pathlib.Path(sys.argv[1])
header = (root / "native/library/include/firsttouch.h").read_text()
version = ".".join(re.search(rf"#define FT_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
found = {
    "packaging/vcpkg/ports/firsttouch/vcpkg.json": json.loads((root / "packaging/vcpkg/ports/firsttouch/vcpkg.json").read_text())["version"],
    "bindings/python/pyproject.toml": tomllib.loads((root / "bindings/python/pyproject.toml").read_text())["project"]["version"],
    "bindings/python/firsttouch/__init__.py": re.search(r'__version__ = "(.*)"', (root / "bindings/python/firsttouch/__init__.py").read_text())[1],
    "bindings/rust/Cargo.toml": tomllib.loads((root / "bindings/rust/Cargo.toml").read_text())["package"]["version"],
}
wrong = {name: other for name, other in found.items() if other != version}
if wrong:
    sys.exit(f"firsttouch.h has version {version}, but {wrong}: change them together")
