"""Tasks whose instances are in another table: select the tasks first, then look them up for each row of that table."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.formats.traces.selection import SelectedTasks, Selection, Task
from bayplan.formats.traces.shapes import Shape


class Parent(msgspec.Struct, frozen=True, gc=False):
    """The properties that instances inherit from their task. `arrival_ns` is the arrival of the task, in the time of the trace."""

    job: str
    shape: Shape
    arrival_ns: int
    labels: Mapping[str, str]

    def instance(self, name: str, arrival_ns: int, end_ns: int | None) -> Task:
        """Return an instance with individual times. `end_ns` is None if it had not ended."""
        run_time_ns = None if end_ns is None else end_ns - arrival_ns
        return Task(
            name=name,
            job=self.job,
            shape=self.shape,
            arrival_ns=arrival_ns,
            end_ns=end_ns,
            run_time_ns=run_time_ns,
            labels=self.labels,
        )


class Parents:
    """The selected tasks, by name.

    Args:
        selection: selects the tasks; its limit counts the instances of the tasks.

    Attributes:
        selected: the tasks, until the first one is looked up.
    """

    def __init__(self, selection: Selection) -> None:
        self.selected = SelectedTasks(selection)
        self._by_name: dict[str, Parent] | None = None

    def find(self, name: str) -> Parent | None:
        """Return the task with this name; None if it is not selected."""
        if self._by_name is None:
            self._by_name = {
                each.name: Parent(each.job, each.shape, each.arrival_ns, each.labels) for each in self.selected.rows()
            }
            self.selected = SelectedTasks(self.selected.selection)
        return self._by_name.get(name)
