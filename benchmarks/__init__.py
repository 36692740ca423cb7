"""Benchmarks of time, memory and bytes; each figure has a hash of the decisions behind it.

A benchmark is a module ``benchmarks/bench_<noun>.py`` with a function ``figures(size)`` that yields `Figure` values.
``size`` is ``"small"`` (a second or two; every test run runs it) or ``"large"`` (the figures that the documentation
quotes). Seeds are fixed. A change that improves a figure and changes its hash is not an optimisation.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number.

    Attributes:
        name: what was measured, e.g. ``"plain pods, one template, 5,000 nodes"``.
        value: the number, in `unit`.
        unit: the unit, e.g. ``"decisions/s"``, ``"bytes/record"``, ``"s"``.
        decisions_hash: the digest of all decisions; empty if there are none.
        note: facts that a comparison needs, e.g. the number of pods that were placed.
    """

    name: str
    value: float
    unit: str
    decisions_hash: str = ""
    note: str = ""
