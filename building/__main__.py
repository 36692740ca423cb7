"""``python -m building``: compile the modules of this checkout that are out of date."""

from __future__ import annotations

import argparse
import sys
import time

from building.compilers import NoCompilerError, find_compiler
from building.extensions import BuildError, build, discard, folder_of, is_current
from building.modules import CHECKED, ROOT, TAG, all_variants, checkout_sources, variant_of_this_machine

HINT = "Compiling takes a minute or more, once; BAYPLAN_UNCOMPILED=1 leaves it out of make run, test and bench."


def main() -> int:
    """Compile, and return the exit code: 0 if every module is up to date, or compiling is optional and impossible."""
    parser = argparse.ArgumentParser(prog="python -m building", description=__doc__)
    parser.add_argument("--if-possible", action="store_true", help="Succeed without compiling if there is no compiler.")
    parser.add_argument("--checked", action="store_true", help="Check bounds, memory and undefined behaviour.")
    parser.add_argument("--all-variants", action="store_true", help="Compile for every CPU, not only for this one.")
    parser.add_argument("--no-zig", action="store_true", help="Never install ziglang.")
    options = parser.parse_args()
    variants = [CHECKED] if options.checked else all_variants() if options.all_variants else [variant_of_this_machine()]
    started = time.monotonic()
    try:
        compiler = find_compiler(install_zig=not options.no_zig)
    except NoCompilerError as problem:
        if not is_current(checkout_sources(), variants):
            discard(checkout_sources(), checked=options.checked)
            print(f"Running uncompiled, several times slower: {problem}", file=sys.stderr)
        return 0 if options.if_possible else 1
    if not folder_of(checkout_sources(), variants[0]).exists():
        print(HINT, file=sys.stderr, flush=True)
    try:
        count = build(checkout_sources(), compiler, ROOT / "build" / "compiled" / TAG, variants)
    except BuildError as problem:
        print(problem, file=sys.stderr)
        return 1
    if count:
        print(f"Compiled {count} modules in {time.monotonic() - started:.0f} s.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
