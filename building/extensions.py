"""Translate and compile the modules that are out of date, in several processes, and write the manifest of the build."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from building.compilers import COLD, HOT, Compiler
from building.modules import (
    BASELINE,
    CHECKED,
    PACKAGE,
    SHARED,
    TAG,
    Module,
    Sources,
    all_variants,
    is_indexed,
)

DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # Annotations are for mypy; C types come from the .pxd only.
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "cdivision": False,  # /, // and % have Python's meaning; Go's division is go.quotient.
    "binding": True,
    "embedsignature": False,
    "auto_pickle": False,  # Methods for pickling are a tenth of the C code; a pickled class has `__reduce__`.
}
CHECKED_DIRECTIVES = {**DIRECTIVES, "boundscheck": True, "initializedcheck": True, "nonecheck": True}
INDEXED_DIRECTIVES = {"boundscheck": True, "wraparound": True, "nonecheck": True}
"""Directives for modules outside the engine (`is_indexed`): indices and None are checked as in Python."""

MAX_PROCESSES = 8
"""Maximum number of worker processes: each takes up to 300 MB, and a container may have fewer CPUs than it sees."""

_PROGRESS_STEP = 10
"""Number of modules between two lines of progress."""

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Built:
    """One module in the manifest.

    Attributes:
        sources: the hashes of its source files.
        variants: the compiled variants.
        key: identifies everything else that the extensions depend on.
    """

    sources: dict[str, str]
    variants: list[str]
    key: str


@dataclass(frozen=True)
class Job:
    """One module to compile, passed to a worker process, with the compiler flags of each variant."""

    module: Module
    root: Path
    folder: Path
    scratch: Path
    flags: dict[str, list[str]]
    compiler: Compiler
    key: str


class BuildError(Exception):
    """A module does not compile. The message is the output of Cython or the compiler."""


def folder_of(sources: Sources, variant: str = BASELINE) -> Path:
    """Return the folder for the extensions of this Python, where `bayplan.base.build` looks for them."""
    return sources.root / PACKAGE / "_compiled" / (f"{CHECKED}-{TAG}" if variant == CHECKED else TAG)


def build(
    sources: Sources, compiler: Compiler, scratch: Path, variants: Sequence[str], *, processes: int | None = None
) -> int:
    """Compile the modules that are out of date, and return their number.

    Args:
        sources: the modules.
        compiler: the compiler.
        scratch: a folder for C files.
        variants: the variants of hot modules; the others have only the baseline. `CHECKED` alone for the build that
            checks bounds and memory.
        processes: the number of worker processes; None for the number of CPUs that this process may use, at most 8.

    Raises:
        BuildError: a module does not compile; the others are up to date then.
    """
    checked = CHECKED in variants
    folder = folder_of(sources, CHECKED if checked else BASELINE)
    old, new = _read(folder / MANIFEST), {}
    jobs: list[Job] = []
    modules = sources.modules()
    for module in [Module(SHARED), *modules] if modules else []:
        wanted = _variants_of(module, sources, variants)
        level = level_of(module, sources)
        flags = {variant: compiler.flags(variant, level) for variant in wanted}
        options = [compiler.flags(variant, level) for variant in ([CHECKED] if checked else all_variants())]
        key = _key(compiler, options, directives_of(module, checked=checked))
        built = old.get(module.name)
        if (
            built is not None
            and built.key == key
            and built.sources == sources.hashes(sources.files_of(module))
            and set(wanted).issubset(built.variants)
            and all((folder / module.file(variant)).exists() for variant in wanted)
        ):
            new[module.name] = built
        else:
            jobs.append(Job(module, sources.root, folder, scratch, flags, compiler, key))
    problems = []
    if jobs:
        print(
            f"Compiling {len(jobs)} of {len(modules) + 1} modules with {compiler.name} ...", file=sys.stderr, flush=True
        )
        with ProcessPoolExecutor(min(processes or _cpus(), len(jobs))) as pool:
            for count, done in enumerate(as_completed([pool.submit(_run, job) for job in jobs]), start=1):
                if count % _PROGRESS_STEP == 0:
                    print(f"  {count} of {len(jobs)}", file=sys.stderr, flush=True)
                try:
                    name, built = done.result()
                    new[name] = built
                except BuildError as problem:
                    problems.append(str(problem))
    if jobs or new.keys() != old.keys():
        _write(folder, compiler, new)
    if problems:
        raise BuildError("\n".join(sorted(problems)))
    return len(jobs)


def is_current(sources: Sources, variants: Sequence[str]) -> bool:
    """Return whether every module was compiled from its current sources, by any compiler; for `variants` see `build`."""
    built = _read(folder_of(sources, variants[0]) / MANIFEST)
    return bool(built) and all(
        (found := built.get(module.name)) is not None
        and found.sources == sources.hashes(sources.files_of(module))
        and set(_variants_of(module, sources, variants)).issubset(found.variants)
        for module in sources.modules()
    )


def _variants_of(module: Module, sources: Sources, variants: Sequence[str]) -> Sequence[str]:
    return variants if CHECKED in variants or module.name in sources.hot else [BASELINE]


def _cpus() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MAX_PROCESSES)


def discard(sources: Sources, *, checked: bool = False) -> None:
    """Delete the manifest, so that the Python sources run.

    Extensions that are out of date would refuse to be imported.
    """
    (folder_of(sources, CHECKED if checked else BASELINE) / MANIFEST).unlink(missing_ok=True)


def manifest_text(compiler: Compiler, modules: dict[str, Built], *, with_sources: bool) -> str:
    """Return the manifest as JSON. Without sources, as in a wheel, no sources are compared at import."""
    entries = {
        name: {**asdict(built), "sources": built.sources if with_sources else {}}
        for name, built in sorted(modules.items())
    }
    facts = {"compiler": compiler.name, "machine": platform.machine(), "in_checkout": with_sources, "modules": entries}
    return json.dumps(facts, indent=1) + "\n"


def installed_files(sources: Sources, compiler: Compiler) -> dict[str, str]:
    """Return the extensions that a wheel contains and the manifest: path in the wheel by absolute path."""
    folder = folder_of(sources)
    modules = _read(folder / MANIFEST)
    inside = f"{PACKAGE}/_compiled/{TAG}"
    files = {
        str(folder / file): f"{inside}/{file}"
        for name, built in modules.items()
        for file in (Module(name).file(variant) for variant in built.variants)
    }
    installed = folder / "installed.json"
    installed.write_text(manifest_text(compiler, modules, with_sources=False), encoding="utf-8")
    return {**files, str(installed): f"{inside}/{MANIFEST}"}


def _read(path: Path) -> dict[str, Built]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return {name: Built(**built) for name, built in facts["modules"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write(folder: Path, compiler: Compiler, modules: dict[str, Built]) -> None:
    wanted = {Module(name).file(variant) for name, built in modules.items() for variant in built.variants}
    for path in folder.glob("*/*"):
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    new = folder / f"{MANIFEST}.{os.getpid()}.new"
    folder.mkdir(parents=True, exist_ok=True)
    new.write_text(manifest_text(compiler, modules, with_sources=True), encoding="utf-8")
    new.replace(folder / MANIFEST)


def level_of(module: Module, sources: Sources) -> tuple[str, ...]:
    """Return the compiler options that set a module's optimization level."""
    return HOT if module.name in sources.hot else COLD


def directives_of(module: Module, *, checked: bool) -> dict[str, int | bool]:
    """Return Cython's directives for a module."""
    found = CHECKED_DIRECTIVES if checked else DIRECTIVES
    return {**found, **INDEXED_DIRECTIVES} if is_indexed(module) else found


def _key(compiler: Compiler, options: Sequence[Sequence[str]], directives: dict[str, int | bool]) -> str:
    """Return a key of everything the variants of an extension depend on, except its sources."""
    return "; ".join(
        [
            compiler.name,
            ",".join(f"{name}={value}" for name, value in directives.items()),
            f"cython {metadata.version('cython')}",
            sys.version.partition(" ")[0],
            *map(" ".join, options),
        ]
    )


def _run(job: Job) -> tuple[str, Built]:
    """Translate and compile one module, in a worker process."""
    module = job.module
    printed = io.StringIO()
    try:
        sources = Sources(job.root)
        hashes = sources.hashes(
            sources.files_of(module)
        )  # Read before compiling: a source that changes during the build makes the module stale.
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            c_file = _generate_shared(job.scratch) if module.path is None else _translate(job)
        for variant, flags in job.flags.items():
            job.compiler.build(c_file, job.folder / module.file(variant), flags)
    except Exception as problem:  # Cython raises many types of exceptions.
        raise BuildError(f"{module.name}: {printed.getvalue()}{problem}") from None
    return module.name, Built(hashes, list(job.flags), job.key)


def _translate(job: Job) -> Path:
    """Let Cython write the C file, and return its path."""
    from Cython.Build import cythonize

    os.chdir(job.root)  # So that tracebacks name files as bayplan/engine/plan.py, which Python finds on its path.
    path = str(job.module.path)
    checked = CHECKED in job.flags
    folder = job.scratch / (CHECKED if checked else BASELINE)
    cythonize(  # type: ignore[no-untyped-call]
        [path],
        compiler_directives=directives_of(job.module, checked=checked),
        shared_utility_qualified_name=SHARED,
        build_dir=str(folder),
        force=True,
        quiet=True,
    )
    return (folder / path).with_suffix(".c")


def _generate_shared(scratch: Path) -> Path:
    c_file = scratch / f"{SHARED.rpartition('.')[2]}.c"
    scratch.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "cython", f"--generate-shared={c_file}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(done.stdout + done.stderr)
    return c_file
