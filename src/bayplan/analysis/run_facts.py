"""The facts about a run, for the report and ``summary.json``.

They depend only on input, configuration and seed, and contain no wall-clock time, path or command line, so the same run
yields the same bytes on any machine. `WallClock` has the run's wall-clock time, which only the report on a terminal
shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from bayplan.analysis.fragmentation import FragmentationFacts, fragmentation
from bayplan.analysis.pending import PendingFacts, pending_groups
from bayplan.analysis.utilisation import UtilisationFacts, utilisation
from bayplan.analysis.waits import AttemptFacts, WaitFacts, attempts_of, bound_waits, unbound_waits
from bayplan.base.version import KUBERNETES_VERSION, __version__
from bayplan.sim.result import PodFate, SimulationResult
from bayplan.sim.scaling import GroupCost

FORMAT = 1
"""The format of result directories. Increase it if older readers would misinterpret the files."""

MAX_GROUPS = 100
"""Maximum number of groups of pending pods in the facts; the rest is counted."""

FIRST_WARNINGS = 10_000
"""Maximum number of loader warnings in the facts; only input full of warnings exceeds it."""


class PodCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pods, in all and by their state at the end.

    Attributes:
        total: the number of all pods.
        imported: the number of pods that were created with a node.
        bound: the number of pods that got their node in this run.
        placed, succeeded, failed, deleted, pending, gated, unattended: as in `PodFate`.
        evicted: the number of victims of preemption, which are also counted as deleted.
    """

    total: int = 0
    imported: int = 0
    bound: int = 0
    placed: int = 0
    succeeded: int = 0
    failed: int = 0
    deleted: int = 0
    evicted: int = 0
    pending: int = 0
    gated: int = 0
    unattended: int = 0

    @property
    def waiting(self) -> int:
        """Return the number of pods that wait for a node."""
        return self.pending + self.gated + self.unattended


class NodeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of nodes and zones at the end, and the number of nodes that were ever added or removed."""

    total: int = 0
    zones: int = 0
    added: int = 0
    removed: int = 0


class DecisionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Number of cycles by outcome, and how they are recorded.

    Attributes:
        total, scheduled, unschedulable, errors, skipped: the number of cycles.
        record_level: off, summary or full.
        record_bytes: the approximate memory of the records.
    """

    total: int = 0
    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    skipped: int = 0
    record_level: str = ""
    record_bytes: int = 0

    @property
    def bytes_per_record(self) -> float:
        """Return the approximate memory of one record, in bytes."""
        return self.record_bytes / self.total if self.total else 0.0


class WarningFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A warning about the input: its kind, file and line, object, problem and suggestion ("" for none).

    Files are named without their folders, so that the facts don't depend on the location of the input.
    """

    kind: str
    where: str
    what: str
    problem: str
    hint: str = ""


class InputFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The loaded input, and its ignored parts.

    Attributes:
        files: the number of files.
        objects: the number of loaded objects, by kind.
        unused: the number of ignored objects, by kind.
        warnings: the number of warnings of each kind.
        first_warnings: the first `FIRST_WARNINGS` warnings.
        failures: the error messages of controllers, by object.
    """

    files: int = 0
    objects: dict[str, int] = {}
    unused: dict[str, int] = {}
    warnings: dict[str, int] = {}
    first_warnings: list[WarningFacts] = []
    failures: dict[str, str] = {}


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts about one run. Times are nanoseconds of virtual time since 1970.

    Attributes:
        format: the format of the result directory.
        version, kubernetes: the version of Bayplan, and the Kubernetes release that it reproduces.
        seed, digest: see `SimulationResult`.
        start_ns, end_ns, stopped: see `SimulationResult`.
        pending: the largest groups of pods without a node.
        pending_groups: the number of these groups, including those that `pending` omits.
        missing_plugins: the configured plugins that this version lacks; they had no effect.
        custom_plugins: the enabled plugins that are not kube-scheduler's, as ``NAME=WEIGHT``, or ``NAME`` without a
            score. Questions about the result need them. None if an older Bayplan wrote the result.
        node_groups: the node groups of an autoscaler, with their costs.
        descheduled: the number of pods that a descheduler evicted.
        instants: the number of points in virtual time at which something happened.
        events: the number of changes sent to the scheduler.
    """

    format: int = FORMAT
    version: str = __version__
    kubernetes: str = KUBERNETES_VERSION
    seed: int = 0
    digest: str = ""
    start_ns: int = 0
    end_ns: int = 0
    stopped: str = ""
    missing_plugins: list[str] = []
    custom_plugins: list[str] | None = None
    instants: int = 0
    events: int = 0
    pods: PodCounts = PodCounts()
    nodes: NodeCounts = NodeCounts()
    decisions: DecisionCounts = DecisionCounts()
    pending: list[PendingFacts] = []
    pending_groups: int = 0
    waits: WaitFacts = WaitFacts()
    still_waiting: WaitFacts = WaitFacts()
    attempts: AttemptFacts = AttemptFacts()
    utilisation: list[UtilisationFacts] = []
    fragmentation: FragmentationFacts = FragmentationFacts()
    node_groups: list[GroupCost] = []
    descheduled: int = 0
    input: InputFacts = InputFacts()

    def as_dict(self) -> dict[str, object]:
        """Return the facts as plain data: dictionaries, lists, strings and numbers."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        return plain


def run_facts(result: SimulationResult) -> RunFacts:
    """Return the facts about a run. Runs the scheduler's filters to find where pods would fit (see `fragmentation`)."""
    counters, records = result.counters, result.records
    groups = pending_groups(result.pods, result.scheduler)
    return RunFacts(
        seed=result.seed,
        digest=result.digest,
        start_ns=result.start_ns,
        end_ns=result.end_ns,
        stopped=result.stopped,
        kubernetes=result.scheduler.release,
        missing_plugins=list(result.scheduler.missing_plugins),
        custom_plugins=sorted({name for each in result.scheduler.profiles.values() for name in each.custom_plugins}),
        instants=counters.instants,
        events=counters.events,
        pods=_pod_counts(result),
        nodes=_node_counts(result),
        decisions=DecisionCounts(
            total=counters.decisions,
            scheduled=counters.scheduled,
            unschedulable=counters.unschedulable,
            errors=counters.errors,
            skipped=counters.skipped,
            record_level=records.level.name.lower(),
            record_bytes=records.nbytes,
        ),
        pending=groups[:MAX_GROUPS],
        pending_groups=len(groups),
        waits=bound_waits(result.pods),
        still_waiting=unbound_waits(result.pods, result.end_ns),
        attempts=attempts_of(result.pods),
        utilisation=utilisation(result.usage),
        fragmentation=fragmentation(result.pods, result.scheduler),
        node_groups=[] if result.scaling is None else list(result.scaling.costs),
        descheduled=len(result.descheduled or ()),
        input=_input_facts(result),
    )


def _pod_counts(result: SimulationResult) -> PodCounts:
    fates = Counter(pod.fate for pod in result.pods)
    return PodCounts(
        total=len(result.pods),
        imported=sum(pod.imported for pod in result.pods),
        bound=sum(pod.wait_ns is not None for pod in result.pods),
        evicted=result.counters.evictions,
        **{fate.value: fates[fate] for fate in PodFate},
    )


def _node_counts(result: SimulationResult) -> NodeCounts:
    present = [node for node in result.nodes if node.removed_ns is None]
    return NodeCounts(
        total=len(present),
        zones=len({node.zone for node in present if node.zone}),
        added=len(result.nodes),
        removed=len(result.nodes) - len(present),
    )


def _input_facts(result: SimulationResult) -> InputFacts:
    given = result.input
    warnings = Counter(warning.kind.value for warning in given.warnings)
    return InputFacts(
        files=len(given.files),
        objects=dict(given.objects),
        unused=dict(given.unused),
        warnings=dict(warnings),
        first_warnings=[
            WarningFacts(
                kind=warning.kind.value,
                where=_without_folders(warning.where, given.files),
                what=warning.what,
                problem=_without_folders(warning.problem, given.files),
                hint=warning.hint,
            )
            for warning in given.warnings[:FIRST_WARNINGS]
        ],
        failures=dict(result.failures),
    )


def _without_folders(text: str, files: Sequence[str]) -> str:
    """Return a text with the folders removed from file names."""
    for file in files:
        folder, slash, name = file.rpartition("/")
        if slash and folder in text:
            text = text.replace(file, name)
    return text
