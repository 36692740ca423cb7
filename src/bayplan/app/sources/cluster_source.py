"""The present state of a cluster, with all assumptions of an answer about it; see `bayplan.app.sources.opening.open_source`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from bayplan.app.mode import Mode
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.base.durations import SECOND_NS
from bayplan.formats.manifest import LoadWarning
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.sim.pod_count import DEFAULT_MAX_PODS

DEFAULT_APPLIED_NS = 60 * SECOND_NS
"""Virtual time that manifests get which never were in a cluster: StatefulSets make their pods one after the other."""


class SourceKind(StrEnum):
    """Kinds of sources."""

    DUMP = "dump"
    MANIFESTS = "manifests"
    RESULT = "result directory"
    SERVER = "running Bayplan"
    CLUSTER = "live cluster"


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that select a cluster and its scheduler.

    Attributes:
        paths: manifests, dumps and traces; or one result directory; or the URL of one running Bayplan. Empty with `context`.
        context: the context of a kubeconfig: a live cluster, which is only read. "" for none.
        kubeconfig: the kubeconfig of the context; None looks where kubectl looks.
        mode, config, algorithm_provider, feature_gates, plugins: see `bayplan.app.scheduler_setup.read_setup`. A `config` takes
            the place of the configuration of the source.
        seed: the seed for tie-breaking and generated names.
        applied_ns: virtual time for manifests that never were in a cluster.
        max_pods: maximum number of pods that such manifests may make.
        strict: refuse what is otherwise a warning.
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


class Assumption(msgspec.Struct, frozen=True):
    """Something that an answer takes for granted.

    Attributes:
        about: ``configuration``, ``time``, ``nodes``, ``unread`` or ``objects``.
        text: a sentence without its full stop.
    """

    about: str
    text: str


class UnreadKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of which the source has objects that could not be read, or may have.

    Attributes:
        kind: e.g. ``PodDisruptionBudget``.
        reason: the server's words.
        effect: what answers take for granted instead.
    """

    kind: str
    reason: str
    effect: str


class ClusterSource(msgspec.Struct, frozen=True, kw_only=True):
    """The present state of a cluster.

    Attributes:
        name: what the user called it: paths, a URL, a context.
        kind: see `SourceKind`.
        objects: all typed objects: first what others refer to, then pods with a node, then pods that wait. No Secrets.
        scheduler: the scheduler that decides. The source owns its connections: `close` ends them.
        now_ns: time of the cluster, nanoseconds since 1970; 0 if it is unknown.
        assumptions: what answers take for granted, the most important first.
        unread: kinds that could not be read.
        warnings: the warnings about the input, see `bayplan.formats.manifest.LoadWarning`.
        requests: sent to a server, in order, e.g. ``GET /api/v1/pods?limit=500``.
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

    def close(self) -> None:
        """End the connections with HTTP extenders."""
        self.scheduler.connections.close()


def in_order(objects: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """Return objects with those first that others refer to, then pods with a node, then pods that wait."""
    return sorted(objects, key=_rank)


def _rank(item: KubernetesObject) -> int:
    if not isinstance(item, Pod):
        return 0
    return 1 if item.spec.node_name else 2
