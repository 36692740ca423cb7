"""The current state of a cluster, with all assumptions of answers about it; see `bayplan.app.sources.opening`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from bayplan.app.mode import Mode
from bayplan.app.option_values import convert_options
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.formats.manifest import LoadWarning
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.sim.pod_count import DEFAULT_MAX_PODS

DEFAULT_APPLIED_NS = 60 * SECOND_NS
"""Virtual time in which new manifests are applied: StatefulSets create their pods one after the other."""


class SourceKind(StrEnum):
    """The kinds of sources."""

    DUMP = "dump"
    MANIFESTS = "manifests"
    RESULT = "result directory"
    SERVER = "Bayplan server"
    CLUSTER = "live cluster"


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that select a cluster and its scheduler.

    Attributes:
        paths: manifests, dumps and traces; or one result directory; or the URL of one Bayplan server. Empty with `context`.
        context: the kubeconfig context of a live cluster, which is only read; "" for none.
        kubeconfig: the kubeconfig of the context; None for the file that kubectl would use.
        mode: the scheduler: current, or classic (that of v1.16).
        config: the path of a KubeSchedulerConfiguration, or of a Policy in classic mode; it overrides the source's configuration.
        algorithm_provider: the algorithm provider in classic mode; "" for the default one.
        feature_gates: the feature gates, as for ``--feature-gates`` of kube-scheduler.
        plugins: custom plugins, as for ``--plugin``.
        seed: the seed for tie-breaking and generated names.
        applied_ns: the virtual time for manifests that were never in a cluster.
        max_pods: the maximum number of pods created from such manifests.
        strict: whether to treat warnings as errors.
    """

    paths: Sequence[str] = ()
    context: str = ""
    kubeconfig: Path | None = None
    mode: Mode = Mode.CURRENT
    config: Path | None = None
    algorithm_provider: str = ""
    feature_gates: str = ""
    plugins: Sequence[str] = ()
    seed: int = 0
    applied_ns: int = DEFAULT_APPLIED_NS
    max_pods: int = DEFAULT_MAX_PODS
    strict: bool = False

    def __post_init__(self) -> None:
        """Convert values of similar types, such as paths as strings.

        Raises:
            InputError: a value has a wrong type.
        """
        convert_options(self)


class Assumption(msgspec.Struct, frozen=True):
    """An assumption of an answer.

    Attributes:
        about: the topic: ``configuration``, ``time``, ``nodes``, ``unread`` or ``objects``.
        text: a sentence without its full stop.
    """

    about: str
    text: str


class UnreadKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind whose objects could not all be read.

    Attributes:
        kind: the kind, e.g. ``PodDisruptionBudget``.
        reason: the server's words.
        effect: the assumption that answers make instead.
    """

    kind: str
    reason: str
    effect: str


class ClusterSource(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of a cluster.

    Attributes:
        name: the name as given by the user: paths, a URL, a context.
        kind: see `SourceKind`.
        objects: all typed objects: first those of other kinds than Pod, then pods with a node, then pending pods. No
            Secrets.
        scheduler: the scheduler that decides. The source owns its connections, and `close` closes them.
        now_ns: the time of the cluster, nanoseconds since 1970; 0 if it is unknown.
        assumptions: the assumptions of answers, the most important first.
        unread: the kinds that could not be read.
        warnings: the warnings about the input, see `bayplan.formats.manifest.LoadWarning`.
        requests: the requests sent to a server, in order, e.g. ``GET /api/v1/pods?limit=500``.
        failures: why objects of the input are refused, by ``Kind key``.
    """

    name: str
    kind: SourceKind
    objects: Sequence[KubernetesObject]
    scheduler: SchedulerSetup
    now_ns: int
    assumptions: Sequence[Assumption]
    unread: Sequence[UnreadKind] = ()
    warnings: Sequence[LoadWarning] = ()
    requests: Sequence[str] = ()
    failures: Mapping[str, str] = {}

    def refusal(self, target: str) -> InputError | None:
        """Return why a pod of the input does not exist: it is refused. None if this is not known."""
        for name, problem in self.failures.items():
            kind, _, key = name.partition(" ")
            if kind == "Pod" and target.removeprefix("pod/") in (key, key.rpartition("/")[2]):
                return InputError(f"pod {key} is refused: {problem.removeprefix('is forbidden: ')}")
        return None

    def close(self) -> None:
        """Close the connections to HTTP extenders."""
        self.scheduler.connections.close()


def in_order(objects: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """Return objects sorted: first those of other kinds than Pod, then pods with a node, then pending pods."""
    return sorted(objects, key=_rank)


def _rank(item: KubernetesObject) -> int:
    if not isinstance(item, Pod):
        return 0
    return 1 if item.spec.node_name else 2
