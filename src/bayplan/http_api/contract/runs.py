"""Responses about snapshots, forks and comparisons."""

from __future__ import annotations

import msgspec

from bayplan.analysis.run_facts import RunFacts
from bayplan.answers.decisive_plugin import DecisivePlugin
from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer
from bayplan.http_api.contract.cluster import SourceFacts
from bayplan.http_api.contract.matrix import AnyMatrix


class SnapshotRow(Answer, frozen=True, kw_only=True):
    """A snapshot of the cluster. `revision` is the resource version at which it was taken."""

    name: str
    taken_at: Instant
    revision: int


class SnapshotList(ListAnswer, frozen=True, kw_only=True):
    """All snapshots."""

    items: list[SnapshotRow]


class Restored(Answer, frozen=True, kw_only=True):
    """The resource version after a snapshot was restored."""

    revision: int


class ForkProgress(Answer, frozen=True, kw_only=True):
    """The progress of a fork: its virtual time, and the number of decisions and of waiting pods."""

    now: Instant
    decisions: int
    waiting: int


class ForkStatus(Answer, frozen=True, kw_only=True, rename={"origin": "from"}):
    """A fork.

    Attributes:
        origin: ``now`` or the name of a snapshot (``from``).
        state: running, done or failed.
        message: why it failed, or "".
        progress: the progress of the run; null before it starts.
        facts: the facts of the run; null until it is done.
    """

    id: str
    name: str
    origin: str
    state: str
    created_at: Instant
    message: str
    progress: ForkProgress | None
    facts: RunFacts | None


class ForkList(ListAnswer, frozen=True, kw_only=True):
    """All forks, the oldest first."""

    items: list[ForkStatus]


class ComparedRun(Answer, frozen=True, kw_only=True):
    """One of two compared runs.

    Attributes:
        kind: ``now``, ``fork`` or ``server``.
        at: the time of the run; absent for another server.
        sources: the source clusters of the run; absent for a fork.
        url, instance: the URL and instance of another server.
        digest, id: the digest and ID of a fork.
    """

    name: str
    kind: str
    at: Instant | msgspec.UnsetType = msgspec.UNSET
    sources: list[SourceFacts] | msgspec.UnsetType = msgspec.UNSET
    url: str | msgspec.UnsetType = msgspec.UNSET
    instance: str | msgspec.UnsetType = msgspec.UNSET
    digest: str | msgspec.UnsetType = msgspec.UNSET
    id: str | msgspec.UnsetType = msgspec.UNSET


class ComparisonCounts(Answer, frozen=True, kw_only=True):
    """The number of pods in either run, and the number of pods that differ, by kind of difference."""

    pods: int
    moved: int
    only_a: int
    only_b: int


class ComparedFigure(Answer, frozen=True, kw_only=True):
    """A number, as measured in both runs.

    `name` is pods placed, pods pending or nodes with pods.
    """

    name: str
    a: int
    b: int


class ComparedPod(Answer, frozen=True, kw_only=True):
    """A pod whose node differs.

    Attributes:
        kind: moved, only_a or only_b.
        a_node, b_node: the node in each run; "" if the pod is pending, or missing from the run.
        missing_in: ``a`` or ``b`` if the pod exists only in the other run, else "".
    """

    pod: str
    kind: str
    a_node: str
    b_node: str
    missing_in: str
    decisive_plugin: DecisivePlugin | None


class Comparison(ListAnswer, frozen=True, kw_only=True):
    """The differences between two runs."""

    summary: str
    a: ComparedRun
    b: ComparedRun
    counts: ComparisonCounts
    metrics: list[ComparedFigure]
    items: list[ComparedPod]


class ComparedMatrix(Answer, frozen=True, kw_only=True):
    """The last attempt of a pod in one run."""

    name: str
    matrix: AnyMatrix


class PodComparison(Answer, frozen=True, kw_only=True):
    """The last attempts of a pod in two runs, and the plugin that decided differently."""

    pod: str
    a_node: str
    b_node: str
    decisive_plugin: DecisivePlugin | None
    a: ComparedMatrix
    b: ComparedMatrix


class Placements(Answer, frozen=True, kw_only=True):
    """The node of each unfinished pod.

    Attributes:
        pods: the keys of the pods, ``namespace/name``.
        nodes: for each pod, the name of its node; "" if it waits.
        instance: the instance of the server.
    """

    pods: list[str]
    nodes: list[str]
    instance: str
