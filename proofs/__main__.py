"""Run a proof: ``python -m proofs unblock --cases 500 --seed 2``. Exit code 1 if a case fails.

A proof is a module of this package with a function ``prove(cases, seed) -> Proof``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence

from proofs.proof import Proof

PROOFS = ("unblock", "root_causes", "capacity", "nodes", "what_if")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one proof, or all of them, and print the results; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__)
    parser.add_argument("name", nargs="?", choices=PROOFS, help="The proof to run. [default: all]")
    parser.add_argument("--cases", type=int, default=500, help="Number of cases. [default: 500]")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the random clusters. [default: 1]")
    options = parser.parse_args(arguments)
    failed = 0
    for name in (options.name,) if options.name else PROOFS:
        start = time.perf_counter()
        proof: Proof = importlib.import_module(f"proofs.{name}").prove(options.cases, options.seed)
        seconds = time.perf_counter() - start
        print(f"{name}: {proof.summary()} ({seconds:.1f} s, seed {options.seed})")
        for failure in proof.failures[:20]:
            print(f"  {failure}")
        failed += bool(proof.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
