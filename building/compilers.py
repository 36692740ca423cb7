"""Finds a working C compiler: the compiler in ``CC``, else the system's, else zig from the Python package ``ziglang``."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from building.modules import BASELINE, CHECKED, ROOT, SOURCE, V3

COMMON = ("-g0", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-DNDEBUG", "-w")
"""Options for all modules: Go's integers wrap, and its amd64 compiler fuses no multiply and add.

``-ffast-math`` would change scores.
"""

HOT, COLD = ("-O3", "-fno-trapping-math"), ("-O1",)
"""Options for modules with loops over whole arrays (HOT), and for all other modules (COLD).

Modules with calls and attributes compile in half the time at -O1 and run as fast. Without traps, which Python never
enables, loops with conditional float arithmetic are vectorised, too. No result changes.
"""

_NEEDLESS = ("-fno-tree-pta", "-fno-tree-dominator-opts")
_VECTORISED = ("-ftree-vectorize", "-fvect-cost-model=dynamic", "-fno-trapping-math")
_IMPORTED_ONCE = ('-DCYTHON_SMALL_CODE=__attribute__((cold,optimize("O0")))',)
GCC_OPTIONS = {
    HOT: ("-O1", *_NEEDLESS, "-finline-small-functions", *_VECTORISED, *_IMPORTED_ONCE),
    COLD: ("-O1", *_NEEDLESS, *_IMPORTED_ONCE),
}
"""Options of gcc instead of `HOT` and `COLD`.

Two of its optimizations take an eighth of the time, and a simulated pod takes 3 % fewer instructions without them. Of
-O3, hot modules need only the vectoriser and inlining: they compile in less than half the time, and if all pods request
different amounts, a pod takes 1 % more instructions. Functions that run once, when a module is imported, are long and
are not optimized at all, which saves a twentieth of the time.
"""

SANITIZERS = (
    *("-O1", "-g", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-omit-frame-pointer", "-w"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
)

INSTALL_TIMEOUT_S = 120
"""Limit for the installation of ziglang (90 MB). Without a network it fails within seconds."""

PROBE = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "probe"};
PyMODINIT_FUNC PyInit_probe(void) { return PyModule_Create(&module); }
"""


class NoCompilerError(Exception):
    """No compiler on this machine can compile an extension; the message is the reason."""


@dataclass(frozen=True)
class Compiler:
    """A compiler that was tried and works.

    Attributes:
        name: the name for messages, such as ``gcc 12.2.0``.
        command: the command to run; empty for Microsoft's compiler, which setuptools finds.
    """

    name: str
    command: tuple[str, ...] = ()

    @property
    def is_zig(self) -> bool:
        """Whether this is ziglang's compiler."""
        return self.name.startswith("zig")

    def flags(self, variant: str, level: tuple[str, ...] = COLD) -> list[str]:
        """Return the options for one variant of a module; `level`: `HOT` or `COLD`."""
        if not self.command:
            return ["/O2", "/fp:precise"]
        if self.name.startswith("gcc"):
            level = GCC_OPTIONS.get(level, level)
        flags = list(SANITIZERS if variant == CHECKED else (*level, *COMMON))
        if variant == V3:
            flags.append("-march=x86_64_v3" if self.is_zig else "-march=x86-64-v3")
        elif self.is_zig:
            flags.append("-mcpu=baseline")  # Without this, zig compiles for the CPU of this machine.
        return flags

    def build(self, source: Path, target: Path, flags: Sequence[str]) -> None:
        """Compile one C file into one extension.

        Raises:
            RuntimeError: it does not compile; the message is the compiler's output.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f"{target.name}.{os.getpid()}.new")
        include = [sysconfig.get_path("include"), sysconfig.get_path("platinclude"), str(SOURCE)]
        try:
            if self.command:
                self._build(source, new, [*flags, *(f"-I{each}" for each in dict.fromkeys(include))])
            else:
                _build_with_setuptools(source, new, flags, include)
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)

    def _build(self, source: Path, target: Path, options: Sequence[str]) -> None:
        shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared", "-fPIC"]
        strip = [] if sys.platform == "darwin" or any("sanitize" in each for each in options) else ["-s"]
        command = [*self.command, *shared, *strip, *options, str(source), "-o", str(target), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stdout}{done.stderr}")


def _build_with_setuptools(source: Path, target: Path, flags: Sequence[str], include: list[str]) -> None:
    """Compile with Microsoft's compiler, which setuptools knows how to find."""
    from setuptools._distutils.ccompiler import new_compiler

    compiler = new_compiler()
    with tempfile.TemporaryDirectory() as folder:
        objects = compiler.compile([str(source)], output_dir=folder, include_dirs=include, extra_postargs=list(flags))
        libraries = [str(Path(sys.base_exec_prefix) / "libs")]
        compiler.link_shared_object(objects, str(target), library_dirs=libraries, build_temp=folder)


def find_compiler(*, install_zig: bool) -> Compiler:
    """Return the first compiler that compiles an extension.

    The environment variable ``CC`` names the only candidate, so that nothing is compiled by another one unnoticed.

    Args:
        install_zig: whether to install ziglang into this environment if the system has no compiler.

    Raises:
        NoCompilerError: there is none, or the compiler in ``CC`` does not work.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NoCompilerError("compiled modules are not declared safe for free-threaded Python")
    if sys.platform == "win32":
        return _checked(Compiler("msvc"))
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise NoCompilerError("Python.h is missing (on Debian: apt-get install python3-dev)")
    named = os.environ.get("CC", "").strip()
    if named:
        return _named_compiler(named)
    reasons = []
    for command in _system_commands():
        try:
            return _checked(Compiler(_name_of(command), command))
        except (NoCompilerError, OSError) as problem:
            reasons.append(f"{shlex.join(command)} does not work: {problem}")
    if importlib.util.find_spec("ziglang") is None and (not install_zig or not _install_zig()):
        reasons = reasons or ["no C compiler was found"]
        raise NoCompilerError(f"{reasons[0]}; ziglang is not installed")
    command = (sys.executable, "-m", "ziglang", "cc")
    version = subprocess.run([*command[:-1], "version"], capture_output=True, text=True, check=False).stdout.strip()
    return _checked(Compiler(f"zig {version}", command))


def _named_compiler(text: str) -> Compiler:
    try:
        command = tuple(shlex.split(text))
        return _checked(Compiler(_name_of(command), command))
    except (NoCompilerError, OSError, ValueError) as problem:
        raise NoCompilerError(f"CC={text} does not work: {problem}") from None


def _system_commands() -> list[tuple[str, ...]]:
    named = [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    commands = dict.fromkeys(tuple(shlex.split(each)) for each in named if each)
    return [command for command in commands if command and shutil.which(command[0])]


def _name_of(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    first = done.stdout.partition("\n")[0]
    version = re.search(r"\d+(\.\d+)+", re.sub(r"\(.*?\)", "", first) or first)
    family = "clang" if "clang" in first else "gcc" if "gcc" in first.lower() or "Free Software" in done.stdout else ""
    return f"{family or Path(command[0]).name} {version.group() if version else 'of unknown version'}"


def _checked(compiler: Compiler) -> Compiler:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text(PROBE)
        try:
            compiler.build(source, Path(folder) / "probe.so", compiler.flags(BASELINE))
        except Exception as problem:  # distutils raises exceptions of its own types.
            last = [line for line in str(problem).splitlines() if line.strip()] or [""]
            raise NoCompilerError(last[-1].strip()) from None
    return compiler


def _install_zig() -> bool:
    print("No C compiler works here: installing ziglang (90 MB, once) ...", file=sys.stderr, flush=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--retries", "0", "--timeout", "5"]
    command = [*pip, "install", "--constraint", str(ROOT / "constraints.txt"), "ziglang"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    importlib.invalidate_caches()
    return done.returncode == 0
