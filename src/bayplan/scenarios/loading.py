"""Find the scenarios in files of any format: Bayplan's own, KEP-140's, or scheduler_perf's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bayplan.base.errors import InputError
from bayplan.formats.documents import Document, read_documents
from bayplan.formats.files import find_files, read_bytes
from bayplan.scenarios.kep140 import is_kep140, read_kep140
from bayplan.scenarios.reading import ScenarioPlan, read_scenario
from bayplan.scenarios.scheduler_perf import is_scheduler_perf, read_scheduler_perf


class FoundScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario in a file.

    Attributes:
        name, labels: the name and labels by which it can be selected.
        where: its file and line.
        read: the plan; None for a workload of scheduler_perf, whose plan may be large and is created by `make`.
        make: returns the plan; raises InputError if an operation or a template is invalid.
    """

    name: str
    where: str
    make: Callable[[], ScenarioPlan]
    labels: Sequence[str] = ()
    read: ScenarioPlan | None = None


def find_scenarios(paths: Sequence[str]) -> list[FoundScenario]:
    """Return the scenarios in files, folders and patterns, in order.

    Raises:
        InputError: a file does not contain a scenario, or an invalid one; the message has file and line.
    """
    found: list[FoundScenario] = []
    for file in find_files(paths):
        folder = file.path.parent if file.path is not None else Path()
        before = len(found)
        for document in read_documents(read_bytes(file), file.name, suffix=file.suffix):
            found += _scenarios(document, folder)
        if len(found) == before:
            raise InputError(file.name, wanted="a scenario", got="an empty file")
    return found


def _scenarios(document: Document, folder: Path) -> Iterator[FoundScenario]:
    if is_scheduler_perf(document.value):
        for name, labels, where, make in read_scheduler_perf(document, folder):
            yield FoundScenario(name=name, labels=labels, where=where, make=make)
        return
    read = read_kep140 if is_kep140(document.value) else read_scenario
    plan = read(document, folder)
    yield FoundScenario(name=plan.name, where=str(document.source), make=lambda: plan, read=plan)
