"""The cost of the package: time, memory and bytes, each figure with a hash of the decisions behind it.

A benchmark is a module ``benchmarks/bench_<noun>.py`` with a function ``figures(size)`` that yields `Figure` values.
``size`` is ``"small"`` (a second or two; every test run does it) or ``"large"`` (the figures that the documentation
quotes). Seeds are fixed. A change that makes a figure better and its hash different is not an optimisation.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number.

    Attributes:
        name: what was measured, e.g. ``"plain pods, one template, 5,000 nodes"``.
        value: the number, in `unit`.
        unit: e.g. ``"decisions/s"``, ``"bytes/record"``, ``"s"``.
        decisions_hash: digest of all decisions; empty if there are none.
        note: what one must know to compare, e.g. the number of pods that were placed.
    """

    name: str
    value: float
    unit: str
    decisions_hash: str = ""
    note: str = ""
