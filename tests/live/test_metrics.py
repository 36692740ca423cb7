"""Metrics: upstream's names, types, labels and buckets; and what each counts."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from bayplan.engine.actions import Bind, CycleReport, Emit, Evict
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.live.metrics import SchedulerMetrics, _events
from bayplan.live.queue_metrics import QueueFigures
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.pod import Pod
from bayplan.objects.storage import StorageClass
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import make_node, make_pod
from tests.engine.recorders import allow, make_recorder, make_scheduler
from tests.shared import shared_path

SECOND_NS = 1_000_000_000
FACTS = Path(__file__).with_name("kube-scheduler-metrics.txt")
"""Names, types, labels and buckets of the metrics of kube-scheduler v1.36.3, a line each; ``-`` where there are none."""

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "schedule.md"
OURS = frozenset(
    {
        "leader_election_master_status",
        "python_gc_collections_total",
        "python_gc_objects_collected_total",
        "python_gc_objects_uncollectable_total",
        "python_info",
    }
)
"""Not in the table: that was taken without leader election, whose name is that of client-go's metrics; and Go is not Python."""

HINTS = "scheduler_queueing_hint_execution_duration_seconds"
"""Not available either; not in the table, because no hints ran when that was taken."""

LEFT_OUT = (
    "aggregator_",
    "apiserver_",
    "authenticated_user_requests",
    "authentication_",
    "authorization_",
    "cardinality_enforcement_unexpected_categorizations_total",
    "disabled_metrics_total",
    "go_",
    "hidden_metrics_total",
    "registered_metrics_total",
    "rest_client_exec_plugin_",
    "rest_client_transport_",
    "scheduler_batch_",
    "scheduler_get_node_hint_duration_seconds",
    "scheduler_plugin_evaluation_total",
    "scheduler_preemption_goroutines_",
    "scheduler_store_schedule_results_duration_seconds",
    "workqueue_",
)
"""Prefixes of the metrics that are not exported; docs/schedule.md has the reasons."""

Shape = tuple[str, frozenset[str], frozenset[str]]


def scheduler_with(*nodes: str) -> Scheduler:
    scheduler = assemble_scheduler(default_configuration(), in_tree_registry(), feature_gates=FeatureGates())
    for name in nodes:
        scheduler.handle(None, make_node(name).capacity(cpu="1", memory="1Gi", pods="10").obj(), 0)
    return scheduler


def samples(metrics: SchedulerMetrics) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in metrics.text().decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def run(scheduler: Scheduler, metrics: SchedulerMetrics, pod: Pod) -> CycleReport:
    """Let a pod be scheduled, and bound."""
    scheduler.handle(None, pod, 0)
    report = scheduler.schedule_one(SECOND_NS)
    assert report is not None
    metrics.on_cycle(scheduler, report, 0.003)
    for action in report.actions:
        if isinstance(action, Bind):
            bound = replace(pod, spec=replace(pod.spec, node_name=action.node_name))
            metrics.on_actions(scheduler.handle(pod, bound, 2 * SECOND_NS), 2 * SECOND_NS)
    return report


def shapes(text: str) -> dict[str, Shape]:
    """Return type, labels and buckets of the metrics in a text, by name."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    labels: dict[str, set[str]] = {}
    buckets: dict[str, set[str]] = {}
    for name, inner in re.findall(r"^([a-z_0-9]+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found = dict(re.findall(r'(\w+)="([^"]*)"', inner))
        owner = next((each for each in (name, re.sub(r"_(bucket|sum|count)$", "", name)) if each in kinds), name)
        if "le" in found:
            buckets.setdefault(owner, set()).add(f"{float(found.pop('le')):g}")
        labels.setdefault(owner, set()).update(found)
    return {
        name: (kind, frozenset(labels.get(name, ())), frozenset(buckets.get(name, ()))) for name, kind in kinds.items()
    }


def facts() -> dict[str, Shape]:
    """Return type, labels and buckets of kube-scheduler's metrics, by name, from the table next to this file."""
    found: dict[str, Shape] = {}
    for line in FACTS.read_text().splitlines():
        name, kind, labels, buckets = line.split(" ")
        found[name] = (kind, frozenset(labels.split(",")) - {"-"}, frozenset(buckets.split(",")) - {"-"})
    return found


def metrics_of_every_kind() -> dict[str, Shape]:
    """Return the metrics of a scheduler after at least one of each counted event."""
    scheduler = scheduler_with("a")
    metrics = SchedulerMetrics(lambda: QueueFigures(scheduler))
    metrics.set_leading("kube-scheduler", leads=True)
    metrics.requests.waited("host", "GET", 0.1)
    metrics.requests.answered("host", "GET", "200", 0.1, 0, 9)
    metrics.handled("NodeAdd", 0.001)
    metrics.observe_plugin("NodeName", "Filter", "Success", 0.00001)
    metrics.observe_point("Filter", "default-scheduler", "Success", 0.00001)
    run(scheduler, metrics, make_pod("p").req(cpu="100m").obj())
    run(scheduler, metrics, make_pod("large").req(cpu="9").obj())
    return shapes(metrics.text().decode())


def test_the_metrics_table_matches_kube_scheduler_output() -> None:
    reference = gzip.decompress(shared_path("reference", "kube-scheduler-metrics.txt.gz").read_bytes()).decode()
    assert facts() == shapes(reference)


def test_each_metric_matches_the_type_labels_and_buckets_of_upstream() -> None:
    ours, reference = metrics_of_every_kind(), facts()
    assert ours.keys() - reference.keys() == OURS
    assert {name: shape for name, shape in ours.items() if name not in OURS and shape != reference[name]} == {}


def test_missing_upstream_metrics_are_documented() -> None:
    missing = facts().keys() - metrics_of_every_kind().keys()
    assert {name for name in missing if not name.startswith(LEFT_OUT)} == set()
    text = DOCUMENTATION.read_text()
    assert [name for name in (*LEFT_OUT, HINTS) if f"`{name}" not in text] == []
    assert [name for name in LEFT_OUT if not any(each.startswith(name) for each in missing)] == [], "it is there by now"


def test_a_bound_pod_counts_as_a_scheduled_attempt() -> None:
    scheduler = scheduler_with("a")
    metrics = SchedulerMetrics(lambda: QueueFigures(scheduler))
    run(scheduler, metrics, make_pod("p").req(cpu="100m").obj())
    found = samples(metrics)
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'] == 1
    assert found["scheduler_pod_scheduling_attempts_sum"] == 1
    assert found['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="1"}'] == 2
    assert found["scheduler_scheduling_algorithm_duration_seconds_sum"] == 0.003
    assert found['scheduler_cache_size{type="pods"}'] == 1


NODE, POD, PLACED = make_node("n").capacity(cpu="4").obj(), make_pod("p").obj(), make_pod("p").node("n").obj()
GATED = make_pod("p").gate("g").obj()


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, NODE, ["NodeAdd"], id="a new node"),
        pytest.param(NODE, make_node("n").capacity(cpu="8").obj(), ["NodeUpdateNodeAllocatable"], id="a larger node"),
        pytest.param(NODE, NODE, [], id="a heartbeat"),
        pytest.param(None, StorageClass(), ["storage.k8s.io/StorageClassAdd"], id="a group in the name"),
        pytest.param(None, Namespace(), [], id="a kind without events"),
        pytest.param(None, POD, ["UnschedulablePodAdd"], id="a pending pod"),
        pytest.param(None, make_pod("p").scheduler("other").obj(), [], id="a pod of another scheduler"),
        pytest.param(POD, PLACED, ["AssignedPodAdd", "UnschedulablePodDelete"], id="a pod that is bound"),
        pytest.param(POD, None, ["UnschedulablePodDelete"], id="a pending pod that is deleted"),
        pytest.param(PLACED, None, ["AssignedPodDelete"], id="a bound pod that is deleted"),
        pytest.param(PLACED, make_pod("p").node("n").nominated("n").obj(), ["AssignedPodUpdate"], id="a status"),
        pytest.param(
            GATED, POD, ["UnschedulablePodUpdate", "UnschedulablePodUpdatePodSchedulingGatesEliminated"], id="no gates"
        ),
        pytest.param(
            PLACED,
            make_pod("p").node("n").label(a="b").obj(),
            ["AssignedPodUpdate", "AssignedPodUpdatePodLabel"],
            id="labels of a bound pod",
        ),
    ],
)
def test_events_have_upstreams_names(
    old: KubernetesObject | None, new: KubernetesObject | None, want: list[str]
) -> None:
    assert _events(scheduler_with("a"), old, new) == want


@pytest.mark.parametrize("leaves", [False, True])
def test_a_failed_binding_counts_as_an_error(leaves: bool) -> None:
    scheduler = scheduler_with("a")
    metrics = SchedulerMetrics(lambda: QueueFigures(scheduler))
    pod = make_pod("p").req(cpu="100m").obj()
    scheduler.handle(None, pod, 0)
    report = scheduler.schedule_one(SECOND_NS)
    assert report is not None
    metrics.on_cycle(scheduler, report, 0.003)
    metrics.on_actions(report.actions, SECOND_NS)
    if leaves:
        metrics.on_actions(scheduler.handle(pod, None, SECOND_NS), SECOND_NS)
    metrics.on_actions(scheduler.binding_failed(pod, "it is not there", 2 * SECOND_NS), 2 * SECOND_NS)
    found = samples(metrics)
    assert {name: value for name, value in found.items() if name.startswith("scheduler_schedule_attempts_total")} == {
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="error"}': 1
    }
    assert found["scheduler_pod_scheduling_attempts_sum"] == 0


@pytest.mark.parametrize(("allowed", "want"), [(True, "scheduled"), (False, "unschedulable")])
def test_a_permit_wait_is_counted_when_it_is_rejected_or_bound(allowed: bool, want: str) -> None:
    permit = make_recorder("A", [], {"permit": (Status(Code.WAIT), 10 * SECOND_NS)})
    scheduler = make_scheduler(permit, nodes=("n",))
    metrics = SchedulerMetrics(lambda: QueueFigures(scheduler))
    pod = make_pod("p").obj()
    run(scheduler, metrics, pod)
    if allowed:
        metrics.on_actions(allow(scheduler, pod.key, "A", 2 * SECOND_NS), 2 * SECOND_NS)
        bound = replace(pod, spec=replace(pod.spec, node_name="n"))
        metrics.on_actions(scheduler.handle(pod, bound, 3 * SECOND_NS), 3 * SECOND_NS)
    else:
        metrics.on_actions(scheduler.reject_waiting_pod(pod.key, unschedulable("no"), SECOND_NS), SECOND_NS)
    assert {
        name: value for name, value in samples(metrics).items() if name.startswith("scheduler_schedule_attempts_total")
    } == {f'scheduler_schedule_attempts_total{{profile="default-scheduler",result="{want}"}}': 1}


def test_a_pod_preempted_during_binding_counts_as_scheduled() -> None:
    scheduler = scheduler_with("a")
    metrics = SchedulerMetrics(lambda: QueueFigures(scheduler))
    low = make_pod("p").req(cpu="100m").obj()
    scheduler.handle(None, low, 0)
    report = scheduler.schedule_one(SECOND_NS)
    assert report is not None
    metrics.on_cycle(scheduler, report, 0.003)
    metrics.on_actions([Emit(low, "Normal", "Preempted", "Preempting", "for a greater one")], SECOND_NS)
    bound = replace(low, spec=replace(low.spec, node_name="a"))
    metrics.on_actions(scheduler.handle(low, bound, 2 * SECOND_NS), 2 * SECOND_NS)
    found = samples(metrics)
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'] == 1


def test_pending_pods_are_counted_by_plugin_and_queue() -> None:
    scheduler = scheduler_with("a")
    metrics = SchedulerMetrics(lambda: QueueFigures(scheduler))
    run(scheduler, metrics, make_pod("large").req(cpu="9").obj())
    gated = make_pod("gated").gate("wait").obj()
    scheduler.handle(None, gated, 0)
    found = samples(metrics)
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}'] == 1
    assert found['scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}'] == 1
    assert found['scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"}'] == 1
    assert found['scheduler_pending_pods{queue="gated"}'] == 1
    # A plugin that no longer rejects pods stays in the metrics.
    scheduler.handle(gated, None, 0)
    assert samples(metrics)['scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"}'] == 0


def test_preemption_attempts_without_victims_are_counted() -> None:
    scheduler = scheduler_with("a")
    metrics = SchedulerMetrics(lambda: None)
    run(scheduler, metrics, make_pod("large").req(cpu="9").obj())
    found = samples(metrics)
    assert (found["scheduler_preemption_attempts_total"], found["scheduler_preemption_victims_count"]) == (1, 0)


@pytest.mark.parametrize(
    ("message", "want"),
    [
        pytest.param("0/1 nodes are available: 1 no preemption: odd.", 0, id="the text of a custom plugin"),
        pytest.param("0/1 nodes are available: 1 odd. preemption: none.", 1, id="the text of preemption"),
        pytest.param("0/1 nodes are available: 1 odd. none to free, preemption: none.", 1, id="after another plugin's"),
    ],
)
def test_only_the_text_of_default_preemption_counts_as_an_attempt(message: str, want: int) -> None:
    metrics, pod = SchedulerMetrics(lambda: None), make_pod("p").obj()
    metrics.on_cycle(scheduler_with(), CycleReport(pod, Outcome.UNSCHEDULABLE, "", message, ()), 0.001)
    assert samples(metrics)["scheduler_preemption_attempts_total"] == want


def test_preemption_attempts_and_victims_are_counted() -> None:
    scheduler = scheduler_with()
    metrics = SchedulerMetrics(lambda: None)
    vip, low = make_pod("vip").obj(), make_pod("low").obj()
    note = Emit(vip, "Warning", "FailedScheduling", "Scheduling", "no room")
    evictions = (note, Evict(low, vip, "a"), Evict(low, vip, "a"))
    metrics.on_cycle(scheduler, CycleReport(vip, Outcome.UNSCHEDULABLE, "", "no room", evictions), 0.001)
    found = samples(metrics)
    assert (found["scheduler_preemption_attempts_total"], found["scheduler_preemption_victims_sum"]) == (1, 2)


@pytest.mark.parametrize("leads", [True, False])
def test_leader_election_status_is_reported(leads: bool) -> None:
    metrics = SchedulerMetrics(lambda: None)
    metrics.set_leading("kube-scheduler", leads=leads)
    found = samples(metrics)
    assert found['leader_election_master_status{name="kube-scheduler"}'] == leads
    assert not any(name.startswith("scheduler_pending_pods") for name in found)
