"""Run benchmarks by name (the module without ``bench_``), or all: ``python -m benchmarks --size large cycle``."""

import argparse
import importlib
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Figure


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def figures(name: str, size: str) -> Iterator[Figure]:
    """Run one benchmark and yield its figures."""
    yield from importlib.import_module(f"benchmarks.bench_{name}").figures(size)


def main() -> None:
    """Run the chosen benchmarks, and print one line per figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Bayplan.")
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run, of {', '.join(benchmark_names())}; all by default"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(benchmark_names())
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(benchmark_names())}")
    for name in options.names or benchmark_names():
        start = time.perf_counter()
        for figure in figures(name, options.size):
            text = f"{name:<12} {figure.name:<48} {figure.value:>14,.6g} {figure.unit:<14}"
            print(f"{text} {figure.decisions_hash:<16} {figure.note}".rstrip(), flush=True)
        print(f"{name:<12} took {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
