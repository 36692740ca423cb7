"""Which modules are compiled, what each is made of, and where the files go."""

from __future__ import annotations

import importlib.machinery
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import source_hash
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = "bayplan"

SHARED = f"{PACKAGE}._cyutility"
"""The module with the code that Cython would otherwise repeat in every module. It has no source of its own."""

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
"""As in ``.cpython-311-x86_64-linux-gnu.so``: the Python and the platform that the extensions are for."""

TAG = SUFFIX.strip(".").rpartition(".")[0]
BASELINE, V3, CHECKED = "baseline", "x86-64-v3", "checked"

_INDEXED = (f"{PACKAGE}.apiserver.", f"{PACKAGE}.base.plain_data")
_FROM = re.compile(r"^\s*from\s+([\w.]+)\s+cimport\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_CIMPORT = re.compile(r"^\s*cimport\s+([^\n]*)", re.MULTILINE)
_EXTERN = re.compile(r"""^\s*cdef\s+extern\s+from\s+["']([^"'<>]+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """One compiled module: its dotted name, and its ``.py`` relative to ``src`` (None for `SHARED`)."""

    name: str
    path: Path | None = None

    def file(self, variant: str) -> str:
        """Return the name of its extension, relative to the folder of the build."""
        return f"{variant}/{self.name.removeprefix(PACKAGE + '.')}{SUFFIX}"


@dataclass(frozen=True)
class Sources:
    """The compiled modules of a source tree, and those that get a second variant.

    Attributes:
        root: the folder that contains the package. hot: names of modules that are compiled for x86-64-v3 as well.
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
        """Return all files that a module is made of, relative to the root: its own, and whatever they cimport or include."""
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
        """Return the hash of a file (relative to the root) as `bayplan.base.build` computes it; empty if it is gone."""
        if file not in self._hashes:
            try:
                self._hashes[file] = source_hash((self.root / file).read_bytes()).hex()
            except OSError:
                self._hashes[file] = ""
        return self._hashes[file]

    def hashes(self, files: Iterable[str]) -> dict[str, str]:
        """Return the hash of each file."""
        return {file: self.hash_of(file) for file in files}


def _mentioned_in(declarations: str) -> list[str]:
    """Return the files that a ``.pxd`` may depend on. Those that don't exist belong to other packages, or are no modules."""
    text = re.sub(r"#[^\n]*", "", declarations)
    modules = []
    for package, names in _FROM.findall(text):
        modules.append(package)
        modules += [f"{package}.{name.split()[0]}" for name in names.strip("() \n").split(",") if name.strip()]
    for names in _CIMPORT.findall(text):
        modules += [name.split()[0] for name in names.split(",") if name.strip()]
    return [f"{module.replace('.', '/')}.pxd" for module in modules] + _EXTERN.findall(text)


def checkout_sources() -> Sources:
    """Return the sources of this checkout (or unpacked sdist), with the hot modules that ``pyproject.toml`` names."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return Sources(SOURCE, frozenset(settings["tool"]["bayplan"]["compiled"]["hot"]))


def is_indexed(module: Module) -> bool:
    """Return whether a module handles JSON as users send it, so that its indices are checked and may count from the end."""
    return module.name.startswith(_INDEXED)


def has_x86_64_v3() -> bool:
    """Return whether this platform gets the second variant: the choice at import reads Linux's list of CPU flags."""
    return sys.platform == "linux" and "x86_64" in TAG
