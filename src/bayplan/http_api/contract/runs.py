"""Responses about snapshots, forks and comparisons."""

from __future__ import annotations

import msgspec

from bayplan.analysis.run_facts import RunFacts
from bayplan.answers.decisive_plugin import DecisivePlugin
from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer
from bayplan.http_api.contract.cluster import SourceFacts
from bayplan.http_api.contract.matrix import AnyMatrix


class SnapshotRow(Answer, frozen=True, kw_only=True):
    """A snapshot of the cluster; `revision` is the resource version at that time."""

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
    """The progress of a fork."""

    now: Instant
    decisions: int
    waiting: int


class ForkStatus(Answer, frozen=True, kw_only=True, rename={"origin": "from"}):
    """A fork.

    Attributes:
        origin: ``now`` or a snapshot (``from``).
        state: running, done or failed.
        message: why it failed.
        progress: null before it starts.
        facts: the facts of its run, once it is done.
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
    """One of two runs.

    Attributes:
        kind: ``now``, ``fork`` or ``server``.
        at: its time; not for another server.
        sources: the sources that it follows; not for a fork.
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
    """Number of pods that both runs have, and number that differ, by kind of difference."""

    pods: int
    moved: int
    only_a: int
    only_b: int


class ComparedFigure(Answer, frozen=True, kw_only=True):
    """A figure of both runs."""

    name: str
    a: int
    b: int


class ComparedPod(Answer, frozen=True, kw_only=True):
    """A pod whose node differs; `kind` is moved, only_a or only_b."""

    pod: str
    kind: str
    a_node: str
    b_node: str
    decisive_plugin: DecisivePlugin | None


class Comparison(ListAnswer, frozen=True, kw_only=True):
    """Two runs side by side."""

    sentence: str
    a: ComparedRun
    b: ComparedRun
    counts: ComparisonCounts
    metrics: list[ComparedFigure]
    items: list[ComparedPod]


class ComparedMatrix(Answer, frozen=True, kw_only=True):
    """The last attempt of a pod in a run."""

    name: str
    matrix: AnyMatrix


class PodComparison(Answer, frozen=True, kw_only=True):
    """The last attempts of a pod in two runs."""

    pod: str
    a_node: str
    b_node: str
    decisive_plugin: DecisivePlugin | None
    a: ComparedMatrix
    b: ComparedMatrix


class Placements(Answer, frozen=True, kw_only=True):
    """The node of each unfinished pod.

    Attributes:
        pods: ``namespace/name``.
        nodes: their nodes, "" for pods that wait.
        instance: the instance of the server.
    """

    pods: list[str]
    nodes: list[str]
    instance: str
