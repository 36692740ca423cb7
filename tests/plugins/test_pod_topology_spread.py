"""PodTopologySpread, rule by rule, and against a naive implementation of the documentation on random small clusters."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.framework.configuration.plugin_arguments import PodTopologySpreadArgs
from bayplan.framework.status import Code, Status
from bayplan.objects.affinity import TopologySpreadConstraint
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject, LabelSelector, OwnerReference
from bayplan.objects.pod import Pod
from bayplan.plugins.pod_topology_spread import REASON_CONSTRAINTS, REASON_LABEL, PodTopologySpread
from bayplan.state.views import Rows
from bayplan.testing import PodBuilder, make_node, make_pod
from bayplan.testing.row_results import verdicts_of
from tests.oracle import pod_topology_spread as oracle
from tests.plugins.asking import Asked
from tests.plugins.scenes import HOST, ZONE, Scene, change_scene, scenes, spread_pods

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
LABEL, UNEVEN = (REASON_LABEL,), (REASON_CONSTRAINTS,)
NAMES = ("a1", "a2", "b1", "no")


def constraint(skew: int = 1, key: str = ZONE, when: str = HARD, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "a"}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **more}


def spreading(*constraints: dict[str, Any], app: str = "a") -> PodBuilder:
    return make_pod("p").label(app=app).spec(topologySpreadConstraints=list(constraints))


def scene(counts: str = "", *, taint: str = "") -> Scene:
    """Return nodes a1 and a2 in zone a, b1 in zone b and `no` in none, with one matching pod for each name in `counts`."""
    found = Scene()
    for name in NAMES[:3]:
        node = make_node(name).zone(name[0]).label(disk="ssd" if name != "b1" else "hdd")
        found.set_node((node.taint("k") if name == taint else node).obj())
    found.set_node(make_node("no").obj())
    for number, name in enumerate(counts.split()):
        found.place(make_pod(f"r{number}").label(app="a").obj(), name)
    return found


def refused(item: Pod, where: Scene) -> dict[str, tuple[str, ...]]:
    """Return the reasons of each node that rejects a pod; also compare with the naive implementation."""
    asked = Asked(PodTopologySpread, item, where.state)
    check(asked, where)
    return {name: reasons for name, reasons in asked.reasons().items() if reasons}


NO = {"no": LABEL}
IN_A = {"a1": UNEVEN, "a2": UNEVEN, **NO}


@pytest.mark.parametrize(
    ("item", "counts", "want"),
    [
        pytest.param(spreading(constraint()), "", NO, id="a node without the key is rejected"),
        pytest.param(spreading(constraint()), "a1", IN_A, id="one more in the fuller zone would be too uneven"),
        pytest.param(spreading(constraint(2)), "a1", NO, id="unless the skew may be larger"),
        pytest.param(spreading(constraint()), "a1 b1", NO, id="even zones are open"),
        pytest.param(spreading(constraint(), app="b"), "a1", NO, id="a pod that does not count itself adds nothing"),
        pytest.param(spreading(constraint(), app="b"), "a1 a2", IN_A, id="existing pods may be too uneven"),
        pytest.param(spreading(constraint(1, HOST)), "a1", {"a1": UNEVEN}, id="hostnames are domains, too"),
        pytest.param(
            spreading(constraint(1, HOST), constraint()),
            "a1 b1 no",
            {"a1": UNEVEN, "b1": UNEVEN, **NO},
            id="only nodes with all keys count: pods on `no` do not, and the smallest count is that of a2",
        ),
        pytest.param(
            spreading(constraint(minDomains=3)), "a1 b1", IN_A | {"b1": UNEVEN}, id="too few domains: the smallest is 0"
        ),
        pytest.param(spreading(constraint(minDomains=2)), "a1 b1", NO, id="enough domains"),
        pytest.param(spreading(constraint(when=SOFT)), "a1 a1", {}, id="soft constraints refuse nothing"),
        pytest.param(spreading(constraint(labelSelector={})), "a1 a2", NO, id="an empty selector counts no pod"),
        pytest.param(spreading(constraint(labelSelector=None)), "a1 a2", NO, id="a missing selector counts no pod"),
        pytest.param(
            spreading(constraint(labelSelector={}, matchLabelKeys=["app"])), "a1", IN_A, id="keys alone select"
        ),
        pytest.param(spreading(constraint(key="rack")), "", dict.fromkeys(NAMES, LABEL), id="no node has the key"),
    ],
)
def test_filter_rejects_nodes_that_would_exceed_the_skew(
    item: PodBuilder, counts: str, want: dict[str, tuple[str, ...]]
) -> None:
    assert refused(item.obj(), scene(counts)) == want


def test_only_skew_can_be_resolved_by_preemption() -> None:
    where = scene("a1")
    asked = Asked(PodTopologySpread, spreading(constraint()).obj(), where.state)
    answer = asked.pre_filter()
    assert not isinstance(answer, Status)
    rows = Rows(where.state)
    assert verdicts_of(asked.plugin, asked.spec, answer.params, rows).tolist() == [1, 1, 0, 0x4002]
    assert verdicts_of(asked.plugin, asked.spec, None, rows).tolist() == [0x8004] * 4
    assert asked.plugin.reasons(asked.spec, None, 0x8004) == (
        'reading "PreFilterPodTopologySpread" from cycleState: not found',
    )


def test_pods_of_other_namespaces_and_terminating_pods_do_not_count() -> None:
    where = scene("a1")
    assert refused(spreading(constraint()).obj(), where) == IN_A
    other, _ = where.world.pods["default/r0"]
    ending = replace(other, metadata=replace(other.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    where.update_pod(ending)
    where.place(make_pod("q", "elsewhere").label(app="a").obj(), "a1")
    assert refused(spreading(constraint()).obj(), where) == NO


POLICIES = ("nodeAffinityPolicy", "nodeTaintsPolicy")


@pytest.mark.parametrize(
    ("policies", "counts", "want"),
    [
        pytest.param({}, "a1", NO, id="nodes that the selector excludes don't count by default"),
        pytest.param({POLICIES[0]: "Honor"}, "a1", NO, id="nor if the policy excludes them"),
        pytest.param({POLICIES[0]: "Ignore"}, "a1", IN_A, id="they count if the selector is ignored"),
    ],
)
def test_node_affinity_policy_selects_the_counted_nodes(
    policies: dict[str, Any], counts: str, want: dict[str, tuple[str, ...]]
) -> None:
    item = spreading(constraint(**policies)).node_selector(disk="ssd")
    assert refused(item.obj(), scene(counts)) == want


@pytest.mark.parametrize(
    ("policies", "tolerates", "want"),
    [
        pytest.param({}, False, IN_A, id="tainted nodes count by default"),
        pytest.param({POLICIES[1]: "Ignore"}, False, IN_A, id="even if it is explicit"),
        pytest.param({POLICIES[1]: "Honor"}, False, NO, id="they don't if taints are honoured"),
        pytest.param({POLICIES[1]: "Honor"}, True, IN_A, id="unless the pod tolerates them"),
    ],
)
def test_node_taints_policy_selects_the_counted_nodes(
    policies: dict[str, Any], tolerates: bool, want: dict[str, tuple[str, ...]]
) -> None:
    item = spreading(constraint(**policies))
    if tolerates:
        item.toleration("k")
    assert refused(item.obj(), scene("a1", taint="b1")) == want


def test_match_label_keys_are_ignored_if_the_gates_are_off() -> None:
    item = spreading(constraint(matchLabelKeys=["version"])).label(version="2").obj()
    where = scene("a1")
    gates = {f"MatchLabelKeysInPodTopologySpread{suffix}": False for suffix in ("", "SelectorMerge")}
    asked = Asked(PodTopologySpread, item, where.state, **gates)
    assert {name: reasons for name, reasons in asked.reasons().items() if reasons} == IN_A
    assert refused(item, where) == NO


def test_an_invalid_label_selector_fails_the_cycle() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    item = spreading(constraint(labelSelector=broken)).obj()
    answer = Asked(PodTopologySpread, item, scene().state).pre_filter()
    assert isinstance(answer, Status)
    assert answer.code is Code.ERROR
    assert answer.message.startswith("get constraints from pod: obtaining pod's hard topology spread constraints: ")


# Scores.


def scores(item: Pod, where: Scene, feasible: tuple[str, ...] = NAMES, arguments: object = None) -> Any:
    found = Asked(PodTopologySpread, item, where.state, arguments).scores(list(feasible))
    return None if found is None else (list(found[0].values()), list(found[1].values()))


@pytest.mark.parametrize(
    ("item", "counts", "feasible", "want"),
    [
        pytest.param(spreading(constraint()), "a1", NAMES, None, id="hard constraints give no score"),
        pytest.param(
            spreading(constraint(when=SOFT)),
            "",
            NAMES,
            ([0, 0, 0, 0], [100, 100, 100, 0]),
            id="equal counts give 100, and a node without the key 0",
        ),
        pytest.param(
            spreading(constraint(when=SOFT)), "a1", NAMES, ([1, 1, 0, 0], [0, 0, 100, 0]), id="log of 4 is 1.39"
        ),
        pytest.param(
            spreading(constraint(when=SOFT)),
            "a1 a1 a2 b1",
            NAMES,
            ([4, 4, 1, 0], [25, 25, 100, 0]),
            id="the weight grows with the domains",
        ),
        pytest.param(
            spreading(constraint(when=SOFT)),
            "a1 a1 a2 b1",
            ("a1", "a2", "no"),
            ([3, 3, 0], [100, 100, 0]),
            id="domains are those of feasible nodes: log of 3 is 1.1",
        ),
        pytest.param(
            spreading(constraint(3, when=SOFT)),
            "a1",
            NAMES,
            ([3, 3, 2, 0], [66, 66, 100, 0]),
            id="the allowed skew flattens: all get two more",
        ),
        pytest.param(
            spreading(constraint(1, HOST, SOFT)),
            "a1 a1 no",
            NAMES,
            ([4, 0, 0, 2], [0, 100, 100, 50]),
            id="a hostname counts its own pods, weighed by the number of nodes",
        ),
        pytest.param(
            spreading(constraint(1, HOST, SOFT), constraint(when=SOFT)),
            "a1 b1",
            NAMES,
            ([3, 1, 3, 0], [33, 100, 33, 0]),
            id="constraints add up",
        ),
        pytest.param(spreading(constraint(when=SOFT)), "a1", ("no",), ([0], [0]), id="no feasible node has the key"),
    ],
)
def test_score_prefers_nodes_with_fewer_matching_pods(
    item: PodBuilder, counts: str, feasible: tuple[str, ...], want: Any
) -> None:
    where = scene(counts)
    assert scores(item.obj(), where, feasible) == want
    check(Asked(PodTopologySpread, item.obj(), where.state), where)


# Default constraints, for pods without constraints.

GROUPS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "a"}}},
    {"apiVersion": "v1", "kind": "ReplicationController", "spec": {"selector": {"app": "a"}}},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"selector": {"matchLabels": {"app": "a"}}}},
    {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"selector": {"matchLabels": {"app": "a"}}}},
]
OTHERS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "b"}}},
    {"apiVersion": "v1", "kind": "Service", "spec": {}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "other"}, "spec": {"selector": {"app": "a"}}},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"selector": {}}},
]


def add(where: Scene, document: dict[str, Any]) -> KubernetesObject:
    metadata = {"name": "g", "namespace": "default", **document.get("metadata", {})}
    item = decode({**document, "metadata": metadata})
    where.state.catalog.put(f"{metadata['namespace']}/g", item)
    return item


def member(kind: str) -> Pod:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = OwnerReference(api_version=version, kind=kind, name="g", uid="1", controller=True)
    item = make_pod("p").label(app="a").obj()
    return replace(item, metadata=replace(item.metadata, owner_references=() if kind == "Service" else (owner,)))


@pytest.mark.parametrize("document", GROUPS, ids=[f"its {item['kind']}" for item in GROUPS])
def test_system_defaults_spread_pods_of_one_group(document: dict[str, Any]) -> None:
    where = scene("a1")
    item = member(document["kind"])
    asked = Asked(PodTopologySpread, item, where.state)
    assert asked.scores(list(NAMES)) is None
    add(where, document)
    # 1.79 for the node and 2, 1.61 for the zone (of three: none counts as one) and 4.
    assert asked.scores(list(NAMES)) == (
        dict(zip(NAMES, (9, 8, 6, 2), strict=True)),
        dict(zip(NAMES, (22, 33, 55, 100), strict=True)),
    )
    assert asked.skips_filter()
    if document["kind"] == "Service":
        where.state.catalog.remove(type(add(where, document)), "default/g")
        assert asked.scores(list(NAMES)) is None


@pytest.mark.parametrize("document", OTHERS, ids=["of other labels", "without selector", "elsewhere", "an empty one"])
def test_system_defaults_ignore_groups_that_do_not_select_the_pod(document: dict[str, Any]) -> None:
    where = scene("a1")
    add(where, document)
    assert Asked(PodTopologySpread, member(document["kind"]), where.state).scores(list(NAMES)) is None


def test_listed_defaults_can_be_hard_and_require_all_keys() -> None:
    where = scene("a1")
    add(where, GROUPS[0])
    defaults = tuple(
        TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable=when) for when in (HARD, SOFT)
    )
    arguments = PodTopologySpreadArgs(default_constraints=defaults, defaulting_type="List")
    asked = Asked(PodTopologySpread, member("Service"), where.state, arguments)
    assert {name: reasons for name, reasons in asked.reasons().items() if reasons} == IN_A
    assert scores(member("Service"), where, arguments=arguments) == ([1, 1, 0, 0], [0, 0, 100, 0])
    own = spreading(constraint(2)).obj()
    assert Asked(PodTopologySpread, own, where.state, arguments).reasons() == dict.fromkeys(NAMES[:3]) | NO


def test_an_empty_default_list_disables_spreading() -> None:
    where = scene("a1")
    add(where, GROUPS[0])
    asked = Asked(PodTopologySpread, member("Service"), where.state, PodTopologySpreadArgs(defaulting_type="List"))
    assert asked.skips_filter()
    assert asked.scores(list(NAMES)) is None


# Compared with the naive implementation.


def check(asked: Asked, where: Scene, feasible: list[str] | None = None) -> None:
    """Make sure that the plugin agrees with the naive implementation."""
    pod, world = asked.pod, where.world
    objections = {name: oracle.objection(pod, name, world) for name in world.nodes}
    texts = {None: None, oracle.LABEL: LABEL, oracle.UNEVEN: UNEVEN}
    assert asked.skips_filter() is (oracle.of_kind(pod, HARD) == [])
    assert asked.reasons() == {name: texts[found] for name, found in objections.items()}
    if feasible is None:
        feasible = [name for name, found in objections.items() if not found] or list(world.nodes)
    soft = oracle.of_kind(pod, SOFT)
    raw = oracle.scores(pod, feasible, world, soft)
    want = ({name: score or 0 for name, score in raw.items()}, oracle.normalized(raw)) if soft else None
    assert asked.scores(feasible) == want


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_filters_and_scores_match_the_naive_rules_while_the_cluster_changes(data: st.DataObject) -> None:
    where = data.draw(scenes(spread_pods()))
    asked = [Asked(PodTopologySpread, data.draw(spread_pods()), where.state) for _ in range(2)]
    for step in range(data.draw(st.integers(1, 4))):
        names = sorted(where.world.nodes)
        feasible = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        for one in asked:
            check(one, where, feasible)
        change_scene(data.draw, where, spread_pods(), 10 + step)
    where.state.check_invariants()
    for one in asked:
        check(one, where)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_system_defaults_are_soft_constraints_that_do_not_require_all_keys(data: st.DataObject) -> None:
    where = data.draw(scenes(spread_pods()))
    add(where, GROUPS[0])
    item = member("Service")
    asked = Asked(PodTopologySpread, item, where.state)
    wanted = [
        TopologySpreadConstraint(
            max_skew=skew,
            topology_key=key,
            when_unsatisfiable=SOFT,
            label_selector=LabelSelector(match_labels={"app": "a"}),
        )
        for skew, key in ((3, HOST), (5, ZONE))
    ]
    for step in range(3):
        feasible = data.draw(st.lists(st.sampled_from(sorted(where.world.nodes)), min_size=1, unique=True))
        raw = oracle.scores(item, feasible, where.world, wanted, all_keys=False)
        assert asked.scores(feasible) == ({name: score or 0 for name, score in raw.items()}, oracle.normalized(raw))
        change_scene(data.draw, where, spread_pods(), 10 + step)


# All clusters of a small scope.


@pytest.mark.parametrize("zones", [("z", "z"), ("z", "y"), ("z", "")], ids=["one zone", "two zones", "one in none"])
def test_results_match_the_naive_rules_for_two_nodes_with_two_running_pods(zones: tuple[str, str]) -> None:
    where = Scene()
    for name, zone in zip(("n0", "n1"), zones, strict=True):
        where.set_node((make_node(name).zone(zone) if zone else make_node(name)).obj())
    selectors: tuple[dict[str, Any], ...] = ({}, {"labelSelector": {}})
    sets = [
        [constraint(skew, key, when, **more)]
        for skew, key, when, more in product((1, 2), (ZONE, HOST), (HARD, SOFT), selectors)
    ]
    sets += [
        [constraint(), constraint(1, HOST)],
        [constraint(minDomains=2)],
        [constraint(when=SOFT), constraint(1, HOST, SOFT)],
    ]
    asked = [Asked(PodTopologySpread, spreading(*each, app=app).obj(), where.state) for each in sets for app in "ab"]
    for apps, places in product(product("ab", repeat=2), product(("n0", "n1"), repeat=2)):
        for name, app, place in zip("rs", apps, places, strict=True):
            where.place(make_pod(name).label(app=app).obj(), place)
        for one in asked:
            one.forms = False
            for feasible in (["n0"], ["n0", "n1"]):
                check(one, where, feasible)
    where.state.check_invariants()
