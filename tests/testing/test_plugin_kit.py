"""The conformance kit: Bayplan's plugins keep the contract, and each check catches a plugin that breaks its clause."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bayplan.base.errors import InputError
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import (
    FilterPlugin,
    Handle,
    NormalizePlugin,
    Params,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from bayplan.framework.status import SKIP, SUCCESS, UNRESOLVABLE_BIT, Status, unschedulable
from bayplan.objects.kinds import encode
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE
from bayplan.state.resource_table import CPU
from bayplan.state.views import Rows
from bayplan.testing.builders import make_pod
from bayplan.testing.plugin_kit import check_plugin
from bayplan.testing.plugin_subject import PluginFault
from bayplan.testing.sample_clusters import SampleCluster, node_document

REGISTRY = in_tree_registry()
ARGUMENTS = default_configuration(FeatureGates()).profiles[0].plugin_arguments
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plugins"


@pytest.mark.parametrize("name", REGISTRY.plugins)
def test_every_in_tree_plugin_passes_the_checks(name: str) -> None:
    check_plugin(REGISTRY.plugins[name], arguments=ARGUMENTS.get(name), clusters=25)


def test_the_example_plugin_passes_the_checks() -> None:
    spec = importlib.util.spec_from_file_location("quiet_nodes", EXAMPLES / "quiet_nodes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check_plugin(module.QuietNodes, labels={"app": ("render", "web"), "tier": ("front", "back")})


# --- a plugin that is right, and others that differ from it in one thing -------------------------------------------------


@dataclass(frozen=True)
class PodSpec:
    key: Hashable
    pod: Pod
    milli: int


class Right(FilterPlugin[PodSpec], NormalizePlugin[PodSpec]):
    """A correct plugin: rejects a node if less than half of its free CPU would stay free, and prefers nodes with more."""

    reads: ClassVar[Reads] = Reads.NODES | Reads.USAGE

    def compile(self, pod: Pod, cluster: ClusterState) -> PodSpec:
        milli = sum(1000 if container.resources.requests else 100 for container in pod.spec.containers)
        return PodSpec(milli, pod, milli)

    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        free = rows.allocatable(CPU) - rows.requested(CPU)
        return rows.verdicts((free < 2 * spec.milli, 1), (rows.allocatable(CPU) < spec.milli, 2 | UNRESOLVABLE_BIT))

    def reasons(self, spec: PodSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return ("half of the CPU would not stay free",)

    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        free: Ints = np.maximum(rows.allocatable(CPU) - rows.requested(CPU), 0)
        return free

    def scale(self, spec: PodSpec, params: Params | None, raw: Ints) -> Params:
        return (int(raw.max()),)

    def normalize(self, spec: PodSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        (most,) = scale
        assert isinstance(most, int)
        return rows.quotient(100 * raw, most) if most else np.zeros(len(rows), dtype=np.int64)


def test_a_correct_plugin_passes() -> None:
    check_plugin(Right)


class NoFilterMethod(FilterPlugin[PodSpec]):
    compile = Right.compile


class NoEvents(Right):
    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        return ()


class OddEvents(Right):
    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        return (ClusterEvent(EventResource.NODE, ActionType.ADD),)  # type: ignore[return-value]


class IdleEvents(Right):
    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        return ((ClusterEvent(EventResource.NODE, ActionType(0)), None),)


class SilentHint(Right):
    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        return ((ClusterEvent(EventResource.NODE, ActionType.ADD), lambda pod, old, new: None),)  # type: ignore[return-value]


class NoKey(Right):
    def compile(self, pod: Pod, cluster: ClusterState) -> Any:
        return 1000


class ListAsKey(Right):
    def compile(self, pod: Pod, cluster: ClusterState) -> PodSpec:
        return PodSpec([1000], pod, 1000)  # type: ignore[arg-type]


class WrongType(Right):
    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Any:
        return np.asarray(super().filter(spec, params, rows)).astype(np.int64)


class TooShort(Right):
    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        return super().score(spec, params, rows)[:0]


class OtherForOneRow(Right):
    """Compares each row with the others of its view."""

    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        return rows.verdicts((rows.allocatable(CPU) < np.max(rows.allocatable(CPU)), 1))


class NoReasons(Right):
    def reasons(self, spec: PodSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return ()


class OnlyBits(Right):
    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        return rows.verdicts((rows.allocatable(CPU) < 4000, UNRESOLVABLE_BIT))


class TooHigh(Right):
    def normalize(self, spec: PodSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        return raw


class RawTooHigh(ScorePlugin[PodSpec]):
    compile = Right.compile
    score = Right.score
    reads: ClassVar[Reads] = Right.reads


class NotElementwise(Right):
    def normalize(self, spec: PodSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        return rows.quotient(100 * raw, max(int(raw.max()), 1))


class ScalesByAll(Right):
    def scale_over(self, spec: PodSpec, params: Params | None, raw: Ints, feasible: Bools, rows: Rows) -> Params:
        return (int(raw.max()),)


class Counting(Right):
    """Counts the calls for all rows."""

    def __init__(self, arguments: object, handle: Any) -> None:
        super().__init__(arguments, handle)
        self.asked = itertools.count()

    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        return rows.verdicts((rows.everywhere(rows.index is None and next(self.asked) > 0), 1))


RANDOM: Iterator[int] = itertools.count()


class Different(Right):
    """Each instance gives different scores."""

    def __init__(self, arguments: object, handle: Any) -> None:
        super().__init__(arguments, handle)
        self.opinion = next(RANDOM) % 2

    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        return np.full(len(rows), self.opinion, dtype=np.int64)


class Writes(Right):
    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        if rows.index is None:
            rows.state.usage[FIRST_RESOURCE + CPU] += 1
        return super().filter(spec, params, rows)


class MarksPods(Right):
    def compile(self, pod: Pod, cluster: ClusterState) -> PodSpec:
        return super().compile(pod, cluster)

    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        spec.pod.metadata.labels["seen"] = "yes"
        return super().score(spec, params, rows)


class MarksNodes(PerNodePlugin):
    """Writes the same label again with each call, so only the first call changes the node."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        node.labels["example.com/seen"] = "yes"
        return None


class HidesUsage(Right):
    """Reads usage, but declares only nodes."""

    reads: ClassVar[Reads] = Reads.NODES


class HidesOthers(PerNodePlugin):
    """Reads all pods, but declares only usage."""

    reads: ClassVar[Reads] = Reads.NODES | Reads.USAGE

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return len(node._state.pods)


class HidesPods(PreFilterPlugin[PodSpec], FilterPlugin[PodSpec]):
    """Counts pods in PreFilter, but declares that PreFilter reads nothing."""

    pre_reads: ClassVar[Reads] = Reads.NOTHING
    compile = Right.compile

    def pre_filter(self, spec: PodSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult:
        return PreFilterResult((len(cluster.pods),))

    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        return rows.verdicts((rows.everywhere(params is not None and params[0] == 3), 1))

    reasons = Right.reasons


class ReadsAnnotations(Right):
    """Reads annotations, but omits them from the signature."""

    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        return np.full(len(rows), int(spec.pod.metadata.annotations.get("example.com/likes", "0")), dtype=np.int64)


class ShortKey(Right):
    """Omits priorities from the key of the spec."""

    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        return np.full(len(rows), (spec.pod.spec.priority or 0) % 11, dtype=np.int64)


class SaysSuccess(PreFilterPlugin[PodSpec]):
    compile = Right.compile

    def pre_filter(self, spec: PodSpec, cluster: ClusterState, state: CycleState) -> Status:
        return SUCCESS


class ScoresWithSuccess(PreScorePlugin[PodSpec], ScorePlugin[PodSpec]):
    compile = Right.compile

    def pre_score(self, spec: PodSpec, cluster: ClusterState, feasible: Bools) -> Status:
        return SUCCESS

    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        return np.full(len(rows), 1, dtype=np.int64)


class ArrayAsParams(Right):
    def observe(self, spec: PodSpec, cluster: ClusterState) -> Any:
        return (np.zeros(1),)


class Breaks(PerNodePlugin):
    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return node.labels["disk"]


class ForgetsFreedRows(Right):
    def score(self, spec: PodSpec, params: Params | None, rows: Rows) -> Ints:
        nodes = rows.state.nodes.nodes
        sizes = [len(nodes[row].metadata.name) for row in rows.row_numbers().tolist()]
        return np.array(sizes, dtype=np.int64)


class Reserves(PreFilterPlugin[PodSpec], ReservePlugin[PodSpec]):
    binds_skipped_pods = False

    def compile(self, pod: Pod, cluster: ClusterState) -> PodSpec:
        return PodSpec(pod.metadata.name, pod, 0)

    def pre_filter(self, spec: PodSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        return SKIP

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return unschedulable("the node is taken")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass


class OnlyReserves(ReservePlugin[PodSpec]):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS


class NoTimeout(PermitPlugin[PodSpec]):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return SUCCESS


class NamesAsSortKeys(QueueSortPlugin[PodSpec]):
    def sort_key(self, pod: Pod, timestamp_ns: int) -> Any:
        return pod.metadata.name


class NoHandle(Right):
    def __init__(self, arguments: object, handle: Handle) -> None:
        pass


class TakenName(Right):
    name = "NodeResourcesFit"


class NoRule(Right):
    def filter_rule(self, spec: PodSpec, cluster: ClusterState) -> Any:
        return None


class NodeNoText(PerNodePlugin):
    def filter_node(self, pod: Pod, node: NodeInfo) -> Any:
        return False


BROKEN = [
    (NoFilterMethod, "inherits from the extension point filter without a method filter()"),
    (NoEvents, "NoEvents can reject pods (filter) but registers no event"),
    (OddEvents, "not a (ClusterEvent, hint or None)"),
    (IdleEvents, "contains an event without an action"),
    (SilentHint, "the hint of NodeAdd returned None, not a HintAnswer"),
    (NoKey, "which has no attribute key"),
    (ListAsKey, "the key of the spec is not hashable: [1000]"),
    (WrongType, "filter() returned int64["),
    (TooShort, "score() returned int64[0], not int64["),
    (OtherForOneRow, "an array of one row returns 0 (passes)"),
    (NoReasons, "are (), not a list or tuple of non-empty strings"),
    (OnlyBits, "has no code of its own, only bits"),
    (TooHigh, "not from 0 to 100; feasible nodes:"),
    (RawTooHigh, "not from 0 to 100; feasible nodes:"),
    (NotElementwise, "it may read other rows only through scale()"),
    (ScalesByAll, "scale() depends on scores of nodes that are not feasible"),
    (Counting, "when called"),
    (Different, "when created and called again"),
    (Writes, "calling the plugin changed the resources in use"),
    (MarksPods, "calling the plugin changed the pod"),
    (MarksNodes, "calling the plugin changed a node"),
    (HidesOthers, "although its params did not change and reads declares"),
    (HidesPods, "but pre_reads declares Reads.NOTHING"),
    (ReadsAnnotations, "the pod has another annotation, which its signature leaves out; return it from sign_pod()"),
    (ShortKey, "the pod has another priority, and the key of its spec is the same"),
    (SaysSuccess, "pre_filter() returned SUCCESS; return a PreFilterResult (PROCEED)"),
    (ScoresWithSuccess, "pre_score() returned SUCCESS; return params"),
    (ArrayAsParams, "the params of observe() is not hashable"),
    (Breaks, "KeyError in filter_node()"),
    (ForgetsFreedRows, "AttributeError in "),
    (Reserves, "binds_skipped_pods is False, so reserve() would not be called, but it returned"),
    (OnlyReserves, "OnlyReserves has a method reserve() without a method unreserve()"),
    (NoTimeout, "NoTimeout.permit: expected a pair of Status and timeout in nanoseconds"),
    (NamesAsSortKeys, "NamesAsSortKeys.sort_key: expected a tuple of integers"),
    (NoHandle, "expected an __init__ that calls that of its base class"),
    (TakenName, "a plugin named NodeResourcesFit already exists"),
    (NoRule, "filter_rule() returned None, not a FilterRule; return super().filter_rule(...)"),
    (NodeNoText, "expected None, a reason or a Status, got False"),
]


@pytest.mark.parametrize(("plugin", "want"), [pytest.param(*each, id=each[0].__name__) for each in BROKEN])
def test_a_broken_plugin_is_reported_with_its_fault(plugin: type[Plugin[Any]], want: str) -> None:
    with pytest.raises(PluginFault) as raised:
        check_plugin(plugin, annotations={"example.com/likes": ("1", "2")}, clusters=60)
    assert want in str(raised.value)


def sample(*running: Pod) -> SampleCluster:
    """Return a cluster of two nodes with these pods. The pod to schedule and the newcomer request nothing."""
    nodes = (node_document("n1"), node_document("n2"))
    pod, newcomer = (encode(make_pod(name).label(app="x").annotation(note="x").obj()) for name in ("p", "newcomer"))
    return SampleCluster(nodes, tuple(encode(each) for each in running), pod, newcomer)


def test_usage_that_reads_does_not_declare_is_reported_when_a_pod_leaves() -> None:
    with pytest.raises(PluginFault) as raised:
        check_plugin(HidesUsage, sample_clusters=[sample(make_pod("old").req(cpu="4").node("n1").obj())])
    assert (
        "reads declares only Reads.NODES, and refresh() did not report that other rows must be evaluated again"
        in str(raised.value)
    )


def test_a_fault_is_reported_with_a_minimal_cluster() -> None:
    with pytest.raises(PluginFault) as raised:
        check_plugin(TooHigh)
    text = str(raised.value)
    assert text.startswith("TooHigh breaks its contract: the normalised score of n")
    assert "The contract: Normalised scores of feasible nodes are from 0 to 100" in text
    assert text.count("kind: Node") == 1
    assert text.count("kind: Pod") == 1
    assert "labels: {kubernetes.io/hostname: n" in text
    assert "seed 0" in text


class Raising(PerNodePlugin):
    """Fails on nodes without a label."""

    name = "Raising"

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return node.labels["nowhere"]


def test_an_exception_is_reported_as_a_contract_violation() -> None:
    with pytest.raises(PluginFault) as found:
        check_plugin(Raising)
    assert "KeyError in filter_node(), line " in str(found.value)
    assert "The contract: No call raises an exception." in str(found.value)


def test_a_class_that_is_not_a_plugin_is_refused() -> None:
    with pytest.raises(PluginFault, match="<class 'int'> is not a plugin class: expected a subclass of"):
        check_plugin(int)  # type: ignore[type-var, arg-type, unused-ignore]


def test_checking_zero_clusters_is_refused() -> None:
    with pytest.raises(InputError, match=r"check_plugin\(\): expected at least one"):
        check_plugin(Raising, clusters=0)


def test_the_scheduler_of_a_check_passes_the_arguments_to_the_plugin() -> None:
    seen = []

    class Configured(PreEnqueuePlugin[PodSpec]):
        def __init__(self, arguments: object, handle: Handle) -> None:
            super().__init__(arguments, handle)
            seen.append(arguments)

        def pre_enqueue(self, pod: Pod) -> Status:
            return SUCCESS

        def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
            return [(ClusterEvent(EventResource.POD, ActionType.ALL), None)]

    for given in ({"limit": 3}, (3,)):
        check_plugin(Configured, arguments=given, clusters=1)
        assert seen[-2:] == [given, given]


def test_attributes_of_earlier_versions_are_refused() -> None:
    class Old(Right):
        scalar = True

    with pytest.raises(PluginFault, match=r"Old defines scalar, .*nothing calls it any more"):
        check_plugin(Old)
