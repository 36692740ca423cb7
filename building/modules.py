"""The modules to compile, the files that each depends on, and the places of the extensions."""

from __future__ import annotations

import importlib.machinery
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import source_hash
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = "bayplan"

SHARED = f"{PACKAGE}._cyutility"
"""The module with the code that Cython would otherwise repeat in every module. It has no source file."""

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
"""The suffix of extensions for this Python and platform, such as ``.cpython-311-x86_64-linux-gnu.so``."""

TAG = SUFFIX.strip(".").rpartition(".")[0]
BASELINE, V3, CHECKED = "baseline", "x86-64-v3", "checked"

_INDEXED = tuple(f"{PACKAGE}.{each}" for each in ("apiserver.", "cluster.", "controllers.", "sim."))
_FROM = re.compile(r"^\s*from\s+([\w.]+)\s+cimport\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_CIMPORT = re.compile(r"^\s*cimport\s+([^\n]*)", re.MULTILINE)
_EXTERN = re.compile(r"""^\s*cdef\s+extern\s+from\s+["']([^"'<>]+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """One compiled module: its dotted name, and its ``.py`` relative to ``src`` (None for `SHARED`)."""

    name: str
    path: Path | None = None

    def file(self, variant: str) -> str:
        """Return the path of the module's extension, relative to the folder of the build."""
        return f"{variant}/{self.name.removeprefix(PACKAGE + '.')}{SUFFIX}"


@dataclass(frozen=True)
class Sources:
    """The compiled modules of a source tree.

    Attributes:
        root: the folder that contains the package.
        hot: the names of the modules of which there are several variants.
    """

    root: Path = SOURCE
    hot: frozenset[str] = frozenset()
    _hashes: dict[str, str] = field(default_factory=dict)

    def modules(self) -> list[Module]:
        """Return every module that has a ``.py`` and a ``.pxd``, sorted by name."""
        found = []
        for declarations in sorted((self.root / PACKAGE).rglob("*.pxd")):
            path = declarations.with_suffix(".py")
            if path.exists():
                relative = path.relative_to(self.root)
                found.append(Module(".".join(relative.with_suffix("").parts), relative))
        return found

    def files_of(self, module: Module) -> list[str]:
        """Return the files that a module depends on (its own, cimported and included), relative to the root."""
        if module.path is None:
            return []
        found = [module.path.as_posix()]
        waiting = [module.path.with_suffix(".pxd").as_posix()]
        while waiting:
            file = waiting.pop()
            if file not in found and (self.root / file).is_file():
                found.append(file)
                if file.endswith(".pxd"):
                    waiting += _mentioned_in((self.root / file).read_text(encoding="utf-8"))
        return sorted(found)

    def hash_of(self, file: str) -> str:
        """Return the hash of a file (relative to the root) as `bayplan.base.build` computes it; "" without the file."""
        if file not in self._hashes:
            try:
                self._hashes[file] = source_hash((self.root / file).read_bytes()).hex()
            except OSError:
                self._hashes[file] = ""
        return self._hashes[file]

    def hashes(self, files: Iterable[str]) -> dict[str, str]:
        """Return the hashes of files, by file."""
        return {file: self.hash_of(file) for file in files}


def _mentioned_in(declarations: str) -> list[str]:
    """Return the files that a ``.pxd`` may depend on.

    Those that don't exist belong to other packages, or are not modules.
    """
    text = re.sub(r"#[^\n]*", "", declarations)
    modules = []
    for package, names in _FROM.findall(text):
        modules.append(package)
        modules += [f"{package}.{name.split()[0]}" for name in names.strip("() \n").split(",") if name.strip()]
    for names in _CIMPORT.findall(text):
        modules += [name.split()[0] for name in names.split(",") if name.strip()]
    return [f"{module.replace('.', '/')}.pxd" for module in modules] + _EXTERN.findall(text)


def checkout_sources() -> Sources:
    """Return the sources of this checkout (or unpacked sdist), with the hot modules that ``pyproject.toml`` lists."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return Sources(SOURCE, frozenset(settings["tool"]["bayplan"]["compiled"]["hot"]))


def is_indexed(module: Module) -> bool:
    """Return whether a module handles JSON from users or hosts a cluster; its indices and None are checked as in Python."""
    return module.name.startswith(_INDEXED)


def has_x86_64_v3() -> bool:
    """Return whether this platform gets the x86-64-v3 variant: the choice at import reads Linux's list of CPU flags."""
    return sys.platform == "linux" and "x86_64" in TAG


def all_variants() -> list[str]:
    """Return the variants of hot modules in a wheel, which has to run on every CPU."""
    return [BASELINE, V3] if has_x86_64_v3() else [BASELINE]


def variant_of_this_machine() -> str:
    """Return the variant that Bayplan loads on this machine: the one in `BAYPLAN_VARIANT`, or the best for its CPU."""
    # The package itself can't be imported here: it may be compiled from other sources.
    base_build = run_path(str(SOURCE / PACKAGE / "base" / "build.py"))
    wanted = os.environ.get(base_build["VARIANT_VARIABLE"], "")
    best = V3 if has_x86_64_v3() and base_build["cpu_has_v3"]() else BASELINE
    return wanted if wanted in all_variants() else best
