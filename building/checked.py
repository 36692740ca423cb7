"""``python -m building.checked``: run tests with the checked build, under ASan and UBSan. Arguments go to pytest."""

from __future__ import annotations

import os
import subprocess
import sys

from building.compilers import Compiler, NoCompilerError, find_compiler
from building.modules import CHECKED, ROOT

TESTS = ("tests/building/test_go_arithmetic.py", "tests/state", "tests/framework", "tests/plugins", "tests/engine")
"""Tests of compiled modules.

Python itself and NumPy are built without sanitizers, so only Bayplan's modules are checked.
"""

ASAN = "detect_leaks=0:abort_on_error=0:halt_on_error=1:allocator_may_return_null=1"


def checked_environment(compiler: Compiler) -> dict[str, str]:
    """Return the environment variables with which a process loads the checked build.

    Raises:
        NoCompilerError: a sanitizer library is missing.
    """
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        command = [*compiler.command, f"-print-file-name={name}"]
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if "/" not in found:
            raise NoCompilerError(f"{compiler.name} has no {name} (on Debian it comes with gcc)")
        libraries.append(found)
    return {
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": ASAN,
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",  # ASan only sees allocations that malloc makes.
        "BAYPLAN_VARIANT": CHECKED,
        "BAYPLAN_UNCOMPILED": "",
    }


def main() -> int:
    """Run the tests, and return pytest's exit code."""
    try:
        checked = checked_environment(find_compiler(install_zig=False))
    except NoCompilerError as problem:
        print(problem, file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(sys.argv[1:] or TESTS)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **checked}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
