"""The descheduler in simulations: what each plugin evicts, what stays, and when it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.base.durations import DAY_NS, MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.descheduling.policy import read_policy
from bayplan.sim.result import PodFate, SimulationResult

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def node(name: str, *, zone: str = "", cpu: int = 8, more: str = "") -> str:
    labels = f"labels: {{zone: {zone}}}" if zone else "labels: {}"
    status = f"status: {{allocatable: {{cpu: '{cpu}', memory: 8Gi, pods: '20'}}}}"
    return f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, {labels}}}, {more}{status}}}"


def pod(name: str, node_name: str, cpu: str = "1", *, owner: str = "r", spec: str = "", meta: str = "") -> str:
    controller = (
        f"ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {owner}, uid: {owner}, controller: true}}], "
        if owner
        else ""
    )
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, {meta}{controller}labels: {{app: a}}}}, spec: {{"
        f"nodeName: {node_name}, {spec}containers: [{{name: c, image: i, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}}}"
    )


def policy(name: str, args: str = "", *, point: str = "balance", top: str = "", evictor: str = "") -> str:
    configured = f"{{name: {name}, args: {args}}}" if args else ""
    default = f"{{name: DefaultEvictor, args: {evictor}}}" if evictor else ""
    configs = ", ".join(each for each in (configured, default) if each)
    return f"{HEAD}{top}profiles:\n- {{pluginConfig: [{configs}], plugins: {{{point}: {{enabled: [{name}]}}}}}}\n"


def run(folder: Path, text: str, *items: str, until: int | None = 9) -> SimulationResult:
    cluster, rules = folder / "cluster.yaml", folder / "policy.yaml"
    cluster.write_text("\n---\n".join(items), encoding="utf-8")
    rules.write_text(text, encoding="utf-8")
    until_ns = None if until is None else until * MINUTE_NS
    return simulate(SimulationOptions(paths=[str(cluster)], descheduler=rules, check=True, until_ns=until_ns))


def evicted(result: SimulationResult) -> list[str]:
    return sorted(each.pod.removeprefix("default/") for each in result.descheduled or ())


def several(count: int, *, cpu: str = "1", spec: str = "") -> list[str]:
    """Return pods p0, p1, ... of one owner on the first node."""
    return [pod(f"p{number}", "n1", cpu, spec=spec) for number in range(count)]


def old(more: str) -> str:
    """Return a policy about pods older than a minute."""
    return policy("PodLifeTime", f"{{maxPodLifeTimeSeconds: 60, {more}}}", point="deschedule")


NODES = (node("n1"), node("n2"))
DUPLICATES = policy("RemoveDuplicates")
LIFE_TIME = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", point="deschedule")
SPREAD = policy("RemovePodsViolatingTopologySpreadConstraint")
LOW = policy("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}")
CONSTRAINT = (
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: %s, "
    "labelSelector: {matchLabels: {app: a}}}], "
)
HARD, SOFT = CONSTRAINT % "DoNotSchedule", CONSTRAINT % "ScheduleAnyway"
ZONES = (node("n1", zone="a"), node("n2", zone="b"))

CASES = [
    ("duplicates on a node are evicted beyond an even share", DUPLICATES, (*NODES, *several(4)), ["p2", "p3"]),
    ("pods of different owners are no duplicates", DUPLICATES, (*NODES, pod("p", "n1"), pod("q", "n1", owner="s")), []),
    (
        "duplicates stay if no other node takes them",
        DUPLICATES,
        (node("n1"), node("n2", more="spec: {unschedulable: true}, "), pod("p", "n1"), pod("q", "n1")),
        [],
    ),
    (
        "an excluded kind of owners is left alone",
        policy("RemoveDuplicates", "{excludeOwnerKinds: [ReplicaSet]}"),
        (*NODES, pod("p", "n1"), pod("q", "n1")),
        [],
    ),
    ("pods older than the limit are evicted", LIFE_TIME, (*NODES, pod("p", "n1")), ["p"]),
    (
        "a namespace that is excluded keeps its pods",
        old("namespaces: {exclude: [default]}"),
        (*NODES, pod("p", "n1")),
        [],
    ),
    ("a label selector chooses pods", old("labelSelector: {matchLabels: {app: b}}"), (*NODES, pod("p", "n1")), []),
    ("a state chooses pods", old("states: [Pending]"), (*NODES, pod("p", "n1")), []),
    ("the fullest domain gives pods until the skew holds", SPREAD, (*ZONES, *several(4, spec=HARD)), ["p0", "p1"]),
    ("a skew that holds is left alone", SPREAD, (*ZONES, pod("p", "n1", spec=HARD)), []),
    ("a soft constraint is left alone by default", SPREAD, (*ZONES, *several(4, spec=SOFT)), []),
    (
        "a domain without room gets no pods",
        SPREAD,
        (ZONES[0], node("n2", zone="b", cpu=1), *several(4, cpu="2", spec=HARD)),
        [],
    ),
    (
        "an overutilized node gives pods until it is below the target",
        LOW,
        (*NODES, *(pod(f"p{i}", "n1", owner=f"r{i}") for i in range(6))),
        ["p0", "p1"],
    ),
    (
        "pods of lower priority go first",
        LOW,
        (*NODES, *(pod(f"p{i}", "n1", spec=f"priority: {9 - i}, ") for i in range(5))),
        ["p4"],
    ),
    ("without underutilized nodes nothing happens", LOW, (*NODES, *several(6), pod("q", "n2", "3")), []),
    (
        "deviations count from the mean",
        policy(
            "LowNodeUtilization", "{thresholds: {cpu: 10}, targetThresholds: {cpu: 10}, useDeviationThresholds: true}"
        ),
        (*NODES, *several(3)),
        ["p0"],
    ),
]


@pytest.mark.parametrize(("text", "items", "want"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_each_plugin_evicts_the_expected_pods(
    text: str, items: tuple[str, ...], want: list[str], tmp_path: Path
) -> None:
    assert evicted(run(tmp_path, text, *items)) == want


KEPT = [
    ("without a controller", pod("p", "n1", owner="")),
    ("with local storage", pod("p", "n1", spec="volumes: [{name: v, emptyDir: {}}], ")),
    ("critical for the system", pod("p", "n1", spec="priority: 2000000000, ")),
    ("of a DaemonSet", pod("p", "n1").replace("kind: ReplicaSet", "kind: DaemonSet")),
]


@pytest.mark.parametrize("item", [pytest.param(each[1], id=each[0]) for each in KEPT])
def test_protected_pods_are_not_evicted(item: str, tmp_path: Path) -> None:
    assert evicted(run(tmp_path, LIFE_TIME, *NODES, item)) == []


ANNOTATED = pod("p", "n1", owner="", meta="annotations: {descheduler.alpha.kubernetes.io/evict: ''}, ")
ALLOWED = [
    ("the annotation to evict it", "{}", ANNOTATED),
    ("local storage is allowed", "{evictLocalStoragePods: true}", KEPT[1][1]),
    ("critical pods are allowed", "{evictSystemCriticalPods: true}", KEPT[2][1]),
]


@pytest.mark.parametrize(("evictor", "item"), [pytest.param(*each[1:], id=each[0]) for each in ALLOWED])
def test_annotations_and_evictor_settings_allow_evicting_protected_pods(
    evictor: str, item: str, tmp_path: Path
) -> None:
    text = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", point="deschedule", evictor=evictor)
    assert evicted(run(tmp_path, text, *NODES, item)) == ["p"]


def test_a_disruption_budget_limits_evictions(tmp_path: Path) -> None:
    budget = (
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default}, "
        "spec: {maxUnavailable: 0, selector: {matchLabels: {app: a}}}}"
    )
    assert evicted(run(tmp_path, LIFE_TIME, *NODES, pod("p", "n1"), budget)) == []


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        ("zone=a", ["p"]),
        ("zone==a", ["p"]),
        ("zone!=a", ["q", "r"]),
        ("zone", ["p", "q"]),
        ("'!zone'", ["r"]),
        ("zone in (a, b)", ["p", "q"]),
        ("zone notin (a), zone", ["q"]),
    ],
)
def test_the_node_selector_has_the_syntax_of_label_selectors(selector: str, want: list[str], tmp_path: Path) -> None:
    text = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", point="deschedule", top=f"nodeSelector: {selector}\n")
    nodes = (node("n1", zone="a"), node("n2", zone="b"), node("n3"))
    assert evicted(run(tmp_path, text, *nodes, pod("p", "n1"), pod("q", "n2"), pod("r", "n3"))) == want


@pytest.mark.parametrize(
    ("name", "priority", "want"), [("gold", 7, []), ("gold", 6, ["p"]), ("system-node-critical", 2000000001, ["p"])]
)
def test_the_priority_threshold_may_be_a_class(name: str, priority: int, want: list[str], tmp_path: Path) -> None:
    gold = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: 7}"
    arguments = f"{{priorityThreshold: {{name: {name}}}}}"
    text = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", point="deschedule", evictor=arguments)
    assert evicted(run(tmp_path, text, *NODES, gold, pod("p", "n1", spec=f"priority: {priority}, "))) == want


def test_an_unknown_priority_class_of_the_threshold_is_an_error(tmp_path: Path) -> None:
    arguments = "{priorityThreshold: {name: gold}}"
    text = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", point="deschedule", evictor=arguments)
    with pytest.raises(
        InputError, match=r"priorityThreshold\.name: expected the name of a PriorityClass .* got 'gold'"
    ):
        run(tmp_path, text, *NODES, pod("p", "n1"))


def test_the_maximum_evictions_per_node_is_honoured(tmp_path: Path) -> None:
    text = policy(
        "PodLifeTime", "{maxPodLifeTimeSeconds: 60}", point="deschedule", top="maxNoOfPodsToEvictPerNode: 1\n"
    )
    result = run(tmp_path, text, *NODES, pod("p", "n1"), pod("q", "n1"), pod("r", "n2"))
    assert evicted(result) == ["p", "r"]


def test_a_later_run_evicts_a_pod_that_has_become_too_old(tmp_path: Path) -> None:
    text = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 420}", point="deschedule")
    result = run(tmp_path, text, *NODES, pod("p", "n1"), until=60)
    assert result.descheduled is not None
    (gone,) = result.descheduled
    # This is the first run that finds the pod older than 7 minutes.
    assert gone.time_ns - result.start_ns == 600 * SECOND_NS
    assert (gone.node, gone.plugin) == ("n1", "PodLifeTime")
    assert result.pods[0].disruption == "EvictionByEvictionAPI"


def test_a_run_whose_pods_are_evicted_forever_ends_after_a_day(tmp_path: Path) -> None:
    spec = (
        "{replicas: 2, selector: {matchLabels: {app: w}}, template: {metadata: {labels: {app: w}}, spec: {containers: "
    )
    spec += "[{name: c, image: i}]}}}"
    web = f"{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web, namespace: default}}, spec: {spec}}}"
    text = policy("PodLifeTime", "{maxPodLifeTimeSeconds: 3500}", point="deschedule")
    result = run(tmp_path, text, *NODES, web, until=None)
    assert result.stopped.startswith("the descheduler evicts pods such as default/web-")
    assert result.duration_ns == DAY_NS
    assert len(evicted(result)) == 2 * 24


def test_a_run_whose_pods_are_evicted_continues_until_its_job_is_complete(tmp_path: Path) -> None:
    prefer_n1 = (
        "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: "
        "{matchExpressions: [{key: zone, operator: In, values: [a]}]}}]}}"
    )
    template = (
        f"{{metadata: {{annotations: {{bayplan.io/run-time: 1h}}}}, spec: {{restartPolicy: Never, {prefer_n1}, "
        "containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}"
    )
    job = (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default}, "
        f"spec: {{completions: 60, backoffLimit: 100000, parallelism: 2, template: {template}}}}}"
    )
    nodes = (node("n1", zone="a", cpu=64), node("n2", zone="b", cpu=4))
    result = run(tmp_path, DUPLICATES, *nodes, job, until=None)
    assert result.stopped == ""
    assert sum(each.fate is PodFate.SUCCEEDED for each in result.pods) == 60
    assert result.duration_ns > 2 * DAY_NS


AT = "4 DeschedulerPolicy $.profiles[0].plugins"
MISTAKES = [
    (
        "a plugin that does not run here",
        policy("RemoveFailedPods", point="deschedule"),
        f"{AT}.deschedule.enabled[0]: expected one of PodLifeTime, got 'RemoveFailedPods'",
    ),
    (
        "a plugin at another extension point",
        policy("PodLifeTime", "{maxPodLifeTimeSeconds: 1}"),
        f"{AT}.balance.enabled[0]: expected one of RemoveDuplicates, RemovePodsViolatingTopologySpreadConstraint, "
        "LowNodeUtilization, got 'PodLifeTime'",
    ),
    (
        "arguments that are missing",
        policy("LowNodeUtilization"),
        f"{AT}.balance.enabled[0]: expected arguments of LowNodeUtilization in pluginConfig, got none",
    ),
    (
        "a misspelt argument",
        policy("PodLifeTime", "{maxPodLifeTimeSecond: 1}", point="deschedule"),
        "4 PodLifeTime $.maxPodLifeTimeSecond: got an unknown field; try 'maxPodLifeTimeSeconds'",
    ),
    (
        "a percentage above 100",
        policy("LowNodeUtilization", "{thresholds: {cpu: 120}, targetThresholds: {}}"),
        "4 LowNodeUtilization $.thresholds.cpu: expected a number of at most 100, got 120",
    ),
    (
        "target thresholds below the thresholds",
        policy("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 10}}"),
        "4 LowNodeUtilization $.targetThresholds.cpu: expected a percentage of at least 20 (thresholds), got 10",
    ),
    (
        "thresholds of different resources",
        policy("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 30, memory: 10}}"),
        "4 LowNodeUtilization $.targetThresholds: expected the resources of thresholds, cpu, got cpu, memory",
    ),
    (
        "no threshold",
        policy("LowNodeUtilization", "{thresholds: {}, targetThresholds: {}}"),
        "4 LowNodeUtilization $.thresholds: expected a percentage of a resource, got none; try {cpu: 20}",
    ),
    (
        "namespaces to include where only excluding works",
        policy(
            "LowNodeUtilization",
            "{thresholds: {cpu: 1}, targetThresholds: {cpu: 1}, evictableNamespaces: {include: [a]}}",
        ),
        "4 LowNodeUtilization $.evictableNamespaces.include: expected none, got namespaces; try exclude",
    ),
    (
        "a node selector that can't be parsed",
        policy("RemoveDuplicates", top="nodeSelector: zone in a\n"),
        "3 DeschedulerPolicy $.nodeSelector: expected a label selector, got 'zone in a': unable to parse requirement: "
        "found 'a' expected: '('",
    ),
    (
        "namespaces to include and to exclude",
        policy("RemoveDuplicates", "{namespaces: {include: [a], exclude: [b]}}"),
        "4 RemoveDuplicates $.namespaces: expected include or exclude, got both",
    ),
    (
        "another version",
        policy("RemoveDuplicates").replace("v1alpha2", "v1alpha1"),
        "1 DeschedulerPolicy $.apiVersion: expected 'descheduler/v1alpha2', got 'descheduler/v1alpha1'",
    ),
]


@pytest.mark.parametrize(("text", "message"), [pytest.param(*each[1:], id=each[0]) for each in MISTAKES])
def test_an_invalid_policy_is_refused_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_policy(path)
    assert str(caught.value) == f"{path}:{message}"
