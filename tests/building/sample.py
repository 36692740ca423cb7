"""A small package with compiled modules for tests of the build: its sources, and functions that build and run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from building.compilers import Compiler
from building.extensions import build
from building.modules import SOURCE, Sources, all_variants

BASE = ("__init__.py", "build.py", "go.pxd", "go_arithmetic.h", "go_arithmetic.py")
CHECK = ("__init__.py", "go_arithmetic_check.py", "go_arithmetic_check.pxd")
INIT = '"""A sample."""\n\nfrom bayplan.base.build import install\n\ninstall()\n'
FOLDER = Path(__file__).parent / "sample_sources"


def write_sample(root: Path) -> Sources:
    """Write the sample's sources: the current `bayplan.base.build`, and two modules, the second of which is hot."""
    package = root / "bayplan"
    (package / "base").mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    for name in BASE:
        shutil.copy(SOURCE / "bayplan" / "base" / name, package / "base" / name)
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in (".py", ".pxd"):
            shutil.copy(path, package / path.name)
    return Sources(root, frozenset({"bayplan.fit"}))


def write_arithmetic(root: Path) -> Sources:
    """Write a package of the check of Go's arithmetic alone, as a hot module."""
    package = root / "bayplan"
    for folder in ("base", "testing"):
        (package / folder).mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    for file in (*(f"base/{name}" for name in BASE), *(f"testing/{name}" for name in CHECK)):
        shutil.copy(SOURCE / "bayplan" / file, package / file)
    return Sources(root, frozenset({"bayplan.testing.go_arithmetic_check"}))


def build_sample(root: Path, compiler: Compiler, variants: Sequence[str] = ()) -> int:
    """Compile the modules that are out of date; return how many were compiled."""
    sources = Sources(root, frozenset({"bayplan.fit"}))
    return build(sources, compiler, root.parent / "scratch", variants or all_variants())


def run(root: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that imports the sample instead of this checkout's package."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("BAYPLAN_")}
    variables |= {"PYTHONPATH": str(root), **environment}
    command = [sys.executable, "-S", "-c", program]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, cwd=root)
