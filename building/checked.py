"""``python -m building.checked``: run tests with the checked build, under ASan and UBSan. Arguments go to pytest."""

from __future__ import annotations

import os
import subprocess
import sys

from building.compilers import NoCompilerError, find_compiler
from building.modules import CHECKED, ROOT

TESTS = ("tests/building/test_go_arithmetic.py", "tests/state", "tests/framework", "tests/plugins", "tests/engine")
"""Tests of compiled modules. Python itself and NumPy are not built for these checks, so only what is compiled here is checked."""

ASAN = "detect_leaks=0:abort_on_error=0:halt_on_error=1:allocator_may_return_null=1"


def main() -> int:
    """Return pytest's exit status."""
    try:
        compiler = find_compiler(install_zig=False)
    except NoCompilerError as problem:
        print(problem, file=sys.stderr)
        return 1
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        done = subprocess.run(
            [*compiler.command, f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        if "/" not in done.stdout:
            print(f"{compiler.name} has no {name} (on Debian it comes with gcc)", file=sys.stderr)
            return 1
        libraries.append(done.stdout.strip())
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": ASAN,
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",  # So that ASan sees every allocation of its own.
        "BAYPLAN_VARIANT": CHECKED,
        "BAYPLAN_UNCOMPILED": "",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(sys.argv[1:] or TESTS)]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
