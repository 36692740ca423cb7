"""The build of this package: finds the compiled form of a module, rejects one that is out of date, and names the build.

A module with a `.py` and a `.pxd` file exists twice: as Python source, and as an extension in `_compiled`, where Python
does not look. `install` adds a finder that finds the extensions first. Either all such modules run compiled, or none.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from importlib.util import source_hash, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
UNCOMPILED_VARIABLE = "BAYPLAN_UNCOMPILED"
VARIANT_VARIABLE = "BAYPLAN_VARIANT"
BASELINE, V3, CHECKED = "baseline", "x86-64-v3", "checked"
V3_FLAGS = frozenset({"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"})
"""The features of x86-64-v3 that x86-64-v2 lacks, as Linux names them (LZCNT is abm, and OSXSAVE is xsave)."""

FREE_THREADING_IS_SAFE = False
"""Whether the compiled modules are declared safe without the GIL.

If they are not, Bayplan runs uncompiled when the GIL is disabled: importing them would enable it again.
"""


class CompiledFinder:
    """Finds the extension of a module.

    If its sources have changed since, ImportError names the command that compiles them.

    Args:
        folder: the folder with the manifest and a folder per variant.
        manifest: the contents of the manifest.
        variant: the variant to load if a module has several.
        root: the folder that contains the package; the paths of the sources start there.
    """

    def __init__(
        self, folder: Path, manifest: dict[str, Any], variant: str, root: Path = PACKAGE_FOLDER.parent
    ) -> None:
        self._folder = str(folder)
        self._root = root
        self._modules: dict[str, Any] = manifest["modules"]
        self._variant = variant
        self._in_checkout: bool = manifest["in_checkout"]
        self._hashes: dict[str, str | None] = {}
        used = variant if any(variant in module["variants"] for module in self._modules.values()) else BASELINE
        level = (
            manifest["machine"] if used == BASELINE else f"{manifest['machine']} {CHECKED}" if used == CHECKED else used
        )
        self.name = f"compiled ({manifest['compiler']}, {level})"

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module's extension, or None if the module is not compiled."""
        module = self._modules.get(name)
        if module is None:
            if self._in_checkout and name.startswith("bayplan."):
                self._reject_if_compilable(name)
            return None
        for source, expected in module["sources"].items():
            if self._hash_of(source) != expected:
                raise _stale(name, f"{source} has changed since it was compiled")
        variants = module["variants"]
        variant = self._variant if self._variant in variants else BASELINE
        if variant not in variants:
            command = "make build" if variant == _best_variant() else f"{VARIANT_VARIABLE}={variant} make build"
            raise _stale(name, f"it was compiled for {variants[0]}, not for {variant}", command)
        file = f"{self._folder}/{variant}/{name.removeprefix('bayplan.')}{SUFFIX}"
        return spec_from_file_location(name, file, loader=importlib.machinery.ExtensionFileLoader(name, file))

    def _reject_if_compilable(self, name: str) -> None:
        stem = f"{self._root}/{name.replace('.', '/')}"
        if os.path.exists(f"{stem}.pxd") and os.path.exists(f"{stem}.py"):
            raise _stale(name, "other modules are compiled, but this one is not")

    def _hash_of(self, source: str) -> str | None:
        if source not in self._hashes:
            try:
                with open(f"{self._root}/{source}", "rb") as file:
                    self._hashes[source] = source_hash(file.read()).hex()
            except OSError:
                self._hashes[source] = None
        return self._hashes[source]


def install() -> None:
    """Make compiled modules importable, if there are any for this Python and `BAYPLAN_UNCOMPILED` is not set.

    The package calls this before it imports anything else. Raises ImportError if `BAYPLAN_VARIANT` names a variant that
    does not exist or that this CPU cannot run.
    """
    if os.environ.get(UNCOMPILED_VARIABLE, "") not in ("", "0") or _finder() is not None:
        return
    if not (FREE_THREADING_IS_SAFE or getattr(sys, "_is_gil_enabled", lambda: True)()):
        return
    wanted = os.environ.get(VARIANT_VARIABLE, "")
    tag = SUFFIX.strip(".").rpartition(".")[0]
    folder = PACKAGE_FOLDER / "_compiled" / (f"{CHECKED}-{tag}" if wanted == CHECKED else tag)
    try:
        text = (folder / "manifest.json").read_bytes()
    except OSError:
        if wanted:
            raise ImportError(
                f"{VARIANT_VARIABLE}={wanted}: there is no such build in {folder}; {_command(wanted)}"
            ) from None
        return
    import json

    manifest = json.loads(text)
    if wanted == V3 and not any(V3 in module["variants"] for module in manifest["modules"].values()):
        raise ImportError(
            f'{VARIANT_VARIABLE}={V3}: there is no such build in {folder}; run "{VARIANT_VARIABLE}={V3} make build"'
        )
    sys.meta_path.insert(0, CompiledFinder(folder, manifest, _variant(wanted)))


def build_name() -> str:
    """Return the name of the build: `compiled (gcc 12.2.0, x86-64-v3)` or `uncompiled`.

    Reports and `--version` show it.
    """
    finder = _finder()
    return "uncompiled" if finder is None else finder.name


def cpu_has_v3() -> bool:
    """Return whether this machine can run code for x86-64-v3; always False on systems other than Linux."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return V3_FLAGS.issubset(line.split())
    except OSError:
        pass
    return False


def _variant(wanted: str) -> str:
    if wanted not in ("", BASELINE, V3, CHECKED):
        raise ImportError(f"{VARIANT_VARIABLE}: expected {BASELINE}, {V3} or {CHECKED}, got {wanted!r}")
    if wanted == V3 and not cpu_has_v3():
        raise ImportError(f"{VARIANT_VARIABLE}={V3}: this CPU can't run it; try {VARIANT_VARIABLE}={BASELINE}")
    return wanted or _best_variant()


def _best_variant() -> str:
    return V3 if cpu_has_v3() else BASELINE


def _finder() -> CompiledFinder | None:
    for finder in sys.meta_path:
        if isinstance(finder, CompiledFinder):
            return finder
    return None


def _stale(name: str, reason: str, command: str = "make build") -> ImportError:
    advice = f'run "{command}", or set {UNCOMPILED_VARIABLE}=1 to run the Python sources'
    return ImportError(f"{name}: {reason}; {advice}", name=name)


def _command(variant: str) -> str:
    return f'run "make {"build-checked" if variant == CHECKED else "build"}"'
