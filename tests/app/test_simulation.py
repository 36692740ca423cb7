"""From files to a result: the bundled example, traces, start times, refused objects."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from bayplan.app.simulation import SimulationOptions, prepare_simulation, simulate
from bayplan.base.errors import ConfigurationError, InputError
from bayplan.engine.records import RecordLevel
from bayplan.examples import example_path
from bayplan.objects.namespace import Namespace
from bayplan.sim.arrivals import DEFAULT_START_NS
from bayplan.sim.progress import Progress
from bayplan.sim.result import PodFate

SECOND = 1_000_000_000

NODES_CSV = "sn,cpu_milli,memory_mib,gpu,model\nbig,4000,8192,2,T4\nsmall,1000,1024,0,\n"
TASKS_CSV = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
t0,3000,1024,1,1000,,LS,Running,10,70,20
t1,3000,1024,1,1000,,LS,Running,15,120,90
t2,4000,9000,0,0,,BE,Pending,20,50,
t3,500,512,0,0,,BE,Failed,30,31,30
"""

DUMP_WITHOUT_STATUS = """\
{apiVersion: v1, kind: Node, metadata: {name: n1, uid: n1}, status: {allocatable: {cpu: 4, pods: 110}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default, uid: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: agent}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: agent-1
  namespace: default
  uid: agent-1
  labels: {app: agent}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: agent, controller: true}]
spec: {nodeName: n1, containers: [{name: c, image: agent}]}
status: {phase: Running}
"""


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES_CSV)
    (tmp_path / "tasks.csv").write_text(TASKS_CSV)
    return [str(tmp_path / "nodes.csv"), str(tmp_path / "tasks.csv")]


def test_a_trace_is_replayed(trace: list[str]) -> None:
    result = simulate(SimulationOptions(paths=trace, check=True))
    assert result.start_ns == DEFAULT_START_NS

    def seconds(time_ns: int | None) -> float | None:
        return None if time_ns is None else (time_ns - result.start_ns) / SECOND

    story = [
        (each.key, each.node, seconds(each.arrived_ns), seconds(each.bound_ns), seconds(each.ended_ns), each.fate)
        for each in result.pods
    ]
    assert story == [
        ("default/t0", "big", 10, 10, 60, PodFate.SUCCEEDED),
        ("default/t1", "big", 15, 60, 90, PodFate.SUCCEEDED),
        ("default/t2", "", 20, None, 50, PodFate.DELETED),
        ("default/t3", "small", 30, 30, 31, PodFate.SUCCEEDED),
    ]
    assert result.input.objects == {"Node": 2, "Pod": 4}
    assert result.input.files == trace


def test_manifests_and_traces_can_be_combined(trace: list[str]) -> None:
    pod = (
        b"{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: small, containers: [{name: c, image: i}]}}"
    )
    result = simulate(SimulationOptions(paths=[*trace, "-"]), stdin=BytesIO(pod))
    assert (result.pods[0].key, result.pods[0].node) == ("default/p", "small")
    assert result.input.warnings == []


def test_the_bundled_example_passes_all_checks() -> None:
    result = simulate(SimulationOptions(paths=[str(example_path())], check=True, until_ns=3 * 3600 * SECOND))
    fates = [each.fate for each in result.pods]
    assert fates.count(PodFate.PENDING) == 3
    assert result.counters.scheduled > 50
    assert result.failures == {}


DATED = """
apiVersion: v1
kind: Node
metadata: {name: node, creationTimestamp: "2024-05-01T10:00:00Z"}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, creationTimestamp: "2024-05-01T10:00:30Z"}
spec: {containers: [{name: c, image: app}]}
---
apiVersion: v1
kind: Pod
metadata: {name: q, creationTimestamp: "2024-05-01T10:01:30Z"}
spec: {nodeName: node, containers: [{name: c, image: app}]}
status: {phase: Running, startTime: "2024-05-01T10:02:00Z"}
"""


@pytest.mark.parametrize(
    ("creation_times", "want"),
    [
        pytest.param(False, [("default/q", 0), ("default/p", 0)], id="all at once, when the last of it had happened"),
        pytest.param(True, [("default/p", 30), ("default/q", 90)], id="at their creation times"),
    ],
)
def test_objects_arrive_together_or_at_their_creation_times(
    tmp_path: Path, creation_times: bool, want: list[tuple[str, int]]
) -> None:
    (tmp_path / "dump.yaml").write_text(DATED)
    result = simulate(SimulationOptions(paths=[str(tmp_path)], creation_times=creation_times))
    assert [(each.key, (each.arrived_ns - result.start_ns) // SECOND) for each in result.pods] == want
    start = 1714557600 if creation_times else 1714557720
    assert result.start_ns == start * SECOND


def test_a_refused_object_is_reported_and_ends_a_strict_run(tmp_path: Path) -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: top, containers: [{name: c}]}}"
    (tmp_path / "pod.yaml").write_text(pod)
    options = {"paths": [str(tmp_path / "pod.yaml")]}
    assert "top" in simulate(SimulationOptions(paths=options["paths"])).failures["Pod default/p"]
    with pytest.raises(InputError, match="top"):
        simulate(SimulationOptions(paths=options["paths"], strict=True))


def test_a_pod_may_precede_its_priority_class_in_the_input(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: top, containers: [{name: c}]}}"
    )
    (tmp_path / "b.yaml").write_text(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: top}, value: 7}"
    )
    result = simulate(SimulationOptions(paths=[str(tmp_path)]))
    assert result.failures == {}
    assert result.pods[0].priority == 7


def test_missing_namespaces_are_created(tmp_path: Path) -> None:
    metadata = "{name: p, namespace: shop}"
    pod = f"{{apiVersion: v1, kind: Pod, metadata: {metadata}, spec: {{containers: [{{name: c}}]}}}}"
    (tmp_path / "pod.yaml").write_text(pod)
    prepared = prepare_simulation(SimulationOptions(paths=[str(tmp_path)]))
    prepared.run()
    (namespace,) = prepared.simulator.scheduler.state.catalog.all(Namespace)
    assert namespace.metadata.labels == {"kubernetes.io/metadata.name": "shop"}


def test_an_unknown_feature_gate_is_refused(trace: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="unrecognized feature gate: Fast"):
        simulate(SimulationOptions(paths=trace, feature_gates="Fast=true"))


def test_progress_is_reported() -> None:
    reported: list[Progress] = []
    prepared = prepare_simulation(SimulationOptions(paths=[str(example_path())], record_level=RecordLevel.OFF))
    result = prepared.run(reported.append)
    assert reported
    assert reported[-1].decisions <= result.counters.decisions
    assert result.wall.simulate_seconds > 0
    assert result.wall.load_seconds > 0


def test_replaced_pods_of_a_daemon_set_without_a_status_are_noted(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(DUMP_WITHOUT_STATUS)
    result = simulate(SimulationOptions(paths=[str(tmp_path)], strict=True))
    assert [each.fate for each in result.pods] == [PodFate.DELETED, PodFate.PLACED]
    (note,) = result.input.warnings
    assert str(note).endswith(
        "dump.yaml:3 DaemonSet default/agent: its pod is replaced, "
        "because without a status the revision of its template is unknown"
    )


PREEMPTION = """
apiVersion: v1
kind: Node
metadata: {name: node-1, creationTimestamp: "2026-01-01T00:00:00Z"}
status: {allocatable: {cpu: 1, pods: 9}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {terminationGracePeriodSeconds: 20, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: vip, creationTimestamp: "2026-01-01T00:01:00Z"}
spec: {priority: 10, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
"""


@pytest.mark.parametrize(
    ("termination_s", "start_delay_s", "bound_s", "started_s"),
    [
        pytest.param(0, 0, 60, 60, id="at once by default"),
        pytest.param(5, 0, 65, 65, id="when the victim's processes have ended"),
        pytest.param(300, 3, 80, 83, id="after its grace period at the latest, and the start delay"),
    ],
)
def test_a_preemptor_starts_after_the_termination_of_its_victim(
    termination_s: int, start_delay_s: int, bound_s: int, started_s: int, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(PREEMPTION)
    options = SimulationOptions(
        paths=[str(path)],
        creation_times=True,
        start_delay_ns=start_delay_s * SECOND,
        termination_time_ns=termination_s * SECOND,
    )
    result = simulate(options)
    low, vip = result.pods
    assert (low.fate, low.disruption) == (PodFate.DELETED, "PreemptionByScheduler")
    assert vip.bound_ns is not None
    assert (vip.bound_ns - result.start_ns) // SECOND == bound_s
    assert vip.started_ns is not None
    assert (vip.started_ns - result.start_ns) // SECOND == started_s
