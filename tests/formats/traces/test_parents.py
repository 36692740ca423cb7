"""Instances inherit the properties of their task."""

from __future__ import annotations

from bayplan.formats.traces.parents import Parents
from bayplan.formats.traces.selection import Selection, Task
from bayplan.formats.traces.shapes import Shape

SHAPE = Shape(amounts=(("cpu", "1"),))


def test_an_instance_has_the_job_shape_and_labels_of_its_task_and_its_own_times() -> None:
    parents = Parents(Selection())
    parents.selected.add(Task(name="t", job="j", shape=SHAPE, arrival_ns=5, labels={"user": "u"}))
    parent = parents.find("t")
    assert parent is not None
    assert parent.instance("t-0", 7, 10) == Task(
        name="t-0", job="j", shape=SHAPE, arrival_ns=7, end_ns=10, run_time_ns=3, labels={"user": "u"}
    )
    assert parent.instance("t-1", 7, None).run_time_ns is None
    assert parents.find("other") is None
