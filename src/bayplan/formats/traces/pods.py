"""Convert the selected tasks to pods with times and unique names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from msgspec.structs import replace

from bayplan.formats.trace import TimedPod
from bayplan.formats.traces.selection import Task
from bayplan.formats.traces.shapes import JOB, NAMESPACE, Shape, object_name
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod, PodSpec


def timed_pods(tasks: Iterable[Task]) -> list[TimedPod]:
    """Return the pods of tasks. Pods with equal requests share a spec; pods of one job share their annotations.

    Names are those of the trace, converted to be valid in Kubernetes. A name that already exists gets a number.
    """
    specs: dict[Shape, PodSpec] = {}
    annotations: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, str]] = {}
    names: dict[str, int] = {}
    found: list[TimedPod] = []
    for task in tasks:
        shape = task.shape
        bare = replace(shape, annotations=())
        spec = specs.get(bare)
        if spec is None:
            spec = specs[bare] = shape.spec()
        key = (task.job, shape.annotations)
        notes = annotations.get(key)
        if notes is None:
            notes = annotations[key] = {**dict(shape.annotations), **({JOB: task.job} if task.job else {})}
        for name in _names(task, names):
            metadata = ObjectMeta(
                name=name, namespace=NAMESPACE, labels=cast("dict[str, str]", task.labels), annotations=notes
            )
            found.append(
                TimedPod(
                    pod=Pod(metadata=metadata, spec=spec),
                    arrival_ns=task.arrival_ns,
                    run_time_ns=task.run_time_ns,
                    gone_at_ns=task.gone_at_ns,
                )
            )
    return found


def _names(task: Task, taken: dict[str, int]) -> Iterable[str]:
    base = object_name(task.name)
    for number in range(task.count):
        wanted = f"{base}-{number}" if task.instances > 1 else base
        name = wanted
        while name in taken:
            taken[wanted] = taken.get(wanted, 1) + 1
            name = f"{wanted}-{taken[wanted]}"
        taken[name] = 1
        yield name
