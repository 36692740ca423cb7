"""The common form of all traces: nodes, and pods with their arrival and departure times, counted from 0."""

import msgspec

from bayplan.formats.manifest import LoadWarning
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod


class TimedPod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod of a trace.

    Attributes:
        pod: the pod as submitted, with the API's defaults.
        arrival_ns: the time of submission, in nanoseconds since the start of the trace.
        run_time_ns: the run time once the pod is bound; None to run until `gone_at_ns`, or forever.
        gone_at_ns: the time at which the pod is deleted, running or not; None for never.
    """

    pod: Pod
    arrival_ns: int
    run_time_ns: int | None = None
    gone_at_ns: int | None = None


class Trace(msgspec.Struct, kw_only=True):
    """A recorded or generated workload, and the nodes it ran on if the trace includes them.

    Attributes:
        format: the title of the trace's format, e.g. `OpenB`.
        nodes: the nodes in the order of the input.
        pods: the pods in the order of the input. Pods with equal requests share one spec object, so that the engine
            finds their plan by identity.
        files: the files that were read.
        warnings: the parts of the trace that were ignored, and why.
    """

    format: str
    nodes: list[Node] = msgspec.field(default_factory=list)
    pods: list[TimedPod] = msgspec.field(default_factory=list)
    files: list[str] = msgspec.field(default_factory=list)
    warnings: list[LoadWarning] = msgspec.field(default_factory=list)
