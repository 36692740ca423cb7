"""A cluster before and after changes: all kinds of changes and differences, and the plugin that made the difference."""

from __future__ import annotations

import pytest

from bayplan.answers.answer_text import difference_text
from bayplan.answers.changes import CHANGES, Change, is_change, parse_change
from bayplan.answers.comparing import compare
from bayplan.answers.decisive_plugin import already_better
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.what_if import Answer, Reschedule, what_if
from bayplan.app.question_clusters import changed_setup
from bayplan.app.scheduler_setup import read_setup
from bayplan.base.errors import InputError
from bayplan.objects.meta import KubernetesObject
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from bayplan.testing.object_builders import make_object
from tests.answers.clusters import cluster_of, node, running, waiting

NODES = (node("n1"), node("n2", zone="b"), node("n3", zone="b"))
WEB = tuple(running(f"web-{number}", f"n{1 + number % 3}").obj() for number in range(3))
AGENT = running("agent-1", "n1", owner="agent", kind="DaemonSet", cpu="100m").obj()
BARE = running("bare", "n1", kind="").obj()
BIG = waiting("big", cpu="6")


def kinds(answer: Answer) -> dict[str, str]:
    """Return how each pod differs, by its name."""
    return {each.pod.partition("/")[2]: each.kind for each in answer.differences}


@pytest.mark.parametrize(
    ("items", "change", "want"),
    [
        pytest.param((*NODES, *WEB), "lose-zone=a", {"web-0": "moved"}, id="pods of a lost zone are scheduled again"),
        pytest.param(
            (*NODES, *WEB, AGENT),
            "lose-zone=a",
            {"web-0": "moved", "agent-1": "gone"},
            id="pods of DaemonSets of a lost zone are not scheduled again",
        ),
        pytest.param((*NODES, BARE), "remove-nodes=n1", {"bare": "moved"}, id="bare pods are recreated as copies"),
        pytest.param(
            (*NODES, *WEB), "remove-nodes=n[23]", {"web-1": "moved", "web-2": "moved"}, id="nodes by a pattern"
        ),
        pytest.param(
            (
                node("n1"),
                node("n2"),
                *(running(f"w-{n}", "n1", cpu="2").obj() for n in range(2)),
                *(running(f"x-{n}", "n2", cpu="1500m", owner="x").obj() for n in range(2)),
            ),
            "remove-nodes=n2",
            {"x-0": "waits", "x-1": "waits"},
            id="a pod that finds no room waits",
        ),
        pytest.param((*NODES, *WEB), "drain=n1", {"web-0": "moved"}, id="a drained node is emptied"),
        pytest.param((*NODES, *WEB), "cordon=n1", {}, id="a cordoned node is not emptied"),
        pytest.param((*NODES, *WEB), "taint=n1:x=y:NoSchedule", {}, id="a node with a NoSchedule taint is not emptied"),
        pytest.param(
            (*NODES, *WEB), "taint=n1:x=y:NoExecute", {"web-0": "moved"}, id="a node with a NoExecute taint is emptied"
        ),
        pytest.param((*NODES, *WEB, BIG), "add-nodes=1:cpu=8,memory=16Gi", {"big": "placed"}, id="a larger node"),
        pytest.param((*NODES, *WEB, BIG), "resize=n3:cpu=8", {"big": "placed"}, id="a node with more capacity"),
        pytest.param((*NODES, *WEB), "scale=web:5", {"web-copy-0": "new", "web-copy-1": "new"}, id="more replicas"),
        pytest.param((*NODES, *WEB), "delete=web", dict.fromkeys(("web-0", "web-1", "web-2"), "gone"), id="none"),
        pytest.param((*NODES, *WEB), "restart=web", {}, id="a restart gives the same placements here"),
    ],
)
def test_each_kind_of_change_reports_the_affected_pods(
    items: tuple[KubernetesObject, ...], change: str, want: dict[str, str]
) -> None:
    cluster = cluster_of(*items)
    answer = what_if(cluster, [parse_change(change)])
    assert kinds(answer) == want
    assert sum(answer.counts.values()) == len(answer.differences)
    cluster.state.check_invariants()
    assert [*what_if(cluster, [parse_change(change)]).differences] == [*answer.differences]


def test_scaling_down_removes_pending_pods_first() -> None:
    answer = what_if(cluster_of(*NODES, *WEB, waiting("web-9", owner="web", cpu="9")), [parse_change("scale=web:3")])
    assert kinds(answer) == {"web-9": "gone"}


def test_a_raised_priority_evicts_a_pod() -> None:
    pods = [running(f"w-{number}", "n1", cpu="2").obj() for number in range(2)]
    cluster = cluster_of(node("n1"), *pods, waiting("urgent", cpu="2"))
    answer = what_if(cluster, [parse_change("priority=pod/urgent:10")])
    assert answer.counts == {"moved": 0, "waits": 1, "placed": 1, "gone": 0, "new": 0}
    assert len(answer.evictions) == 1


def test_pods_with_the_same_outcome_on_both_sides_are_not_listed() -> None:
    answer = what_if(cluster_of(*NODES, BIG, waiting("fits")), [parse_change("cordon=n1")])
    assert kinds(answer) == {}
    measures = {each.name: (each.before, each.after) for each in answer.measures}
    assert measures["pods pending"] == (1.0, 1.0)
    assert difference_text(answer)[0] == "cordon=n1: no difference; all 2 pods are where they were."


def test_an_evicted_pod_is_requeued_and_its_preemptor_is_named() -> None:
    pods = [running(f"w-{number}", "n1", cpu="2").obj() for number in range(2)]
    cluster = cluster_of(
        node("n1"), node("n2", cpu="2"), *pods, running("top-0", "n2", owner="top", cpu="2", priority=5).obj()
    )
    answer = what_if(cluster, [parse_change("remove-nodes=n2")])
    assert answer.counts["moved"] == 1
    victim = answer.evictions[0]
    assert (victim.preemptor, victim.node, victim.controller) == ("default/top-0", "n1", "ReplicaSet/web")
    assert kinds(answer)[victim.pod.partition("/")[2]] == "waits"


def configured(cluster: QuestionCluster, change: str, **options: object) -> Answer:
    setup = changed_setup(read_setup(), [change])
    return what_if(cluster, scheduler=setup, scheduler_label=change, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reschedule", "want"),
    [
        pytest.param({}, [], id="pods that have a node stay there"),
        pytest.param({"reschedule": Reschedule.ALL}, ["db-0", "web-0", "web-1"], id="all are placed again, from empty"),
        pytest.param({"reschedule": Reschedule.THESE, "these": ["web"]}, ["web-0", "web-1"], id="or some of them"),
    ],
)
def test_a_changed_configuration_moves_only_pods_selected_for_rescheduling(
    reschedule: dict[str, object], want: list[str]
) -> None:
    # Only the taint keeps pods off the node with the most free resources.
    avoided = make_node("n2").capacity(cpu="64", memory="256Gi").taint("x", "y", "PreferNoSchedule").obj()
    pods = [running(name, "n1", cpu="100m", owner=name[:-2]).obj() for name in ("web-0", "web-1", "db-0")]
    answer = configured(cluster_of(node("n1"), avoided, *pods), "disable=TaintToleration", **reschedule)
    assert kinds(answer) == dict.fromkeys(want, "moved")
    assert {each.plugin for each in answer.differences} == ({"TaintToleration"} if want else set())


def test_a_difference_names_the_deciding_plugin() -> None:
    cluster = cluster_of(node("n1"), node("n2"), running("web-0", "n1").obj())
    answer = what_if(cluster, [parse_change("taint=n1:x=y:NoExecute")])
    assert [(each.plugin, each.reason) for each in answer.differences] == [
        ("TaintToleration", "rejects n1: node(s) had untolerated taint(s)")
    ]
    assert answer.explained == 1


def test_compare_lists_differences_between_two_clusters_per_pod() -> None:
    one = cluster_of(*NODES, *WEB, waiting("gone"))
    moved = running("web-0", "n2").obj()
    two = cluster_of(*NODES[1:], moved, *WEB[1:], waiting("new"))
    answer = compare(one, two, names=("monday", "tuesday"))
    assert kinds(answer) == {"web-0": "moved", "gone": "gone", "new": "new"}
    assert answer.differences[0].reason == "n1 is gone"
    assert difference_text(answer, names=("monday", "tuesday"))[0] == (
        "monday and tuesday: of 5 pods, 1 moves, 1 is gone, 1 is new and pending."
    )


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(
            (running("web-a", "n1"), running("web-b", "n2")),
            (running("web-c", "n2"), running("web-d", "n1")),
            {},
            id="replicas on the same nodes do not differ",
        ),
        pytest.param(
            (running("web-a", "n1"), running("web-b", "n2")),
            (running("web-c", "n3"), running("web-d", "n1")),
            {"web-b": "moved"},
            id="the other replicas are matched by their order",
        ),
        pytest.param(
            (running("web-a", "n1"),),
            (running("web-c", "n1"), running("web-d", "n1")),
            {"web-d": "new"},
            id="a further replica is new",
        ),
        pytest.param(
            (running("web-a", "n1"),),
            (running("db-c", "n1", owner="db"),),
            {"web-a": "gone", "db-c": "new"},
            id="pods of different workloads are not matched",
        ),
        pytest.param(
            (running("db-0", "n1", owner="db", kind="StatefulSet"),),
            (running("db-1", "n1", owner="db", kind="StatefulSet"),),
            {"db-0": "gone", "db-1": "new"},
            id="pods of a StatefulSet have fixed names",
        ),
        pytest.param(
            (running("web-a", "n1"), running("web-b", "n2")),
            (running("web-b", "n2"), running("web-c", "n3")),
            {"web-a": "moved"},
            id="a name that both clusters have decides",
        ),
        pytest.param(
            (
                running("log-a", "n1", owner="log", kind="DaemonSet"),
                running("log-b", "n2", owner="log", kind="DaemonSet"),
            ),
            (
                running("log-c", "n1", owner="log", kind="DaemonSet"),
                running("log-d", "n3", owner="log", kind="DaemonSet"),
            ),
            {"log-b": "gone", "log-d": "new"},
            id="pods of a DaemonSet can't move to another node",
        ),
    ],
)
def test_compare_matches_replicas_with_random_names_within_their_workload(
    before: tuple[PodBuilder, ...], after: tuple[PodBuilder, ...], want: dict[str, str]
) -> None:
    one, two = (cluster_of(*NODES, *(each.obj() for each in pods)) for pods in (before, after))
    answer = compare(one, two)
    assert kinds(answer) == want
    assert answer.explained == sum(kind == "moved" for kind in want.values())


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("lose-zone=eu-1b", Change("lose-zone", "eu-1b"), id="a zone"),
        pytest.param(
            "taint=label:pool=x:k=v:NoSchedule", Change("taint", "label:pool=x", "k=v:NoSchedule"), id="a taint"
        ),
        pytest.param("scale=deployment/shop/web:3", Change("scale", "deployment/shop/web", "3"), id="a workload"),
        pytest.param(
            "add-nodes=2:like=n1,taint=a=b:NoSchedule",
            Change("add-nodes", "2", "like=n1,taint=a=b:NoSchedule"),
            id="nodes",
        ),
        pytest.param("explode=n1", None, id="no such change"),
        pytest.param("scale=web", None, id="no number"),
        pytest.param("cordon=", None, id="no target"),
    ],
)
def test_changes_are_parsed_and_formatted(text: str, want: Change | None) -> None:
    if want is None:
        with pytest.raises(InputError, match="change"):
            parse_change(text)
    else:
        assert parse_change(text) == want
        assert str(want) == text
        assert is_change(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("lose-zone=nowhere", id="no such zone"),
        pytest.param("cordon=nobody", id="no such node"),
        pytest.param("scale=web:many", id="no number of replicas"),
        pytest.param("taint=n1:x", id="no taint"),
        pytest.param("untaint=n1:x", id="no taint to remove"),
        pytest.param("add-nodes=x:cpu=1,memory=1Gi", id="no number of nodes"),
        pytest.param("resize=n1:cpu", id="no amount"),
        pytest.param("resize=n1:cpu=-1", id="an amount below 0"),
        pytest.param("priority=web:high", id="no priority"),
        pytest.param("delete=nobody", id="no such workload"),
    ],
)
def test_an_impossible_change_is_refused_and_leaves_the_cluster_unchanged(text: str) -> None:
    cluster = cluster_of(*NODES, *WEB)
    with pytest.raises(InputError):
        what_if(cluster, [parse_change(text)])
    cluster.state.check_invariants()
    assert set(cluster.state.pods) == {f"default/web-{number}" for number in range(3)}


def test_swapped_parts_of_added_nodes_get_a_suggestion() -> None:
    with pytest.raises(InputError, match="expected COUNT:SHAPE, got 'n1:3'; try add-nodes=3:like=n1"):
        what_if(cluster_of(*NODES), [parse_change("add-nodes=n1:3")])


@pytest.mark.parametrize("text", ["label:pol=x", "label:pol"])
def test_a_misspelt_label_is_followed_by_the_likely_one(text: str) -> None:
    with pytest.raises(InputError, match=rf"got '{text}'; try 'label:pool"):
        what_if(cluster_of(node("n1", pool="x")), [parse_change(f"cordon={text}")])


def test_the_help_lists_every_kind_of_change() -> None:
    from bayplan.cli.what_if import what_if as command

    assert [kind for kind in CHANGES if f"{kind}=" not in (command.__doc__ or "")] == []


def test_uncordoning_removes_the_cordon_taint() -> None:
    cordoned = (
        make_node("n9")
        .capacity(cpu="64", memory="64Gi")
        .unschedulable()
        .taint("node.kubernetes.io/unschedulable")
        .obj()
    )
    answer = what_if(cluster_of(*NODES, cordoned, waiting("big", cpu="50")), [parse_change("uncordon=n9")])
    assert [(each.pod, each.after) for each in answer.differences] == [("default/big", "n9")]


QUOTA = make_object(
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"pods": "4"}},
    }
)


def test_scaling_creates_only_the_replicas_that_a_quota_admits() -> None:
    answer = what_if(cluster_of(*NODES, *WEB, QUOTA), [parse_change("scale=web:6")])
    assert answer.counts["new"] == 1
    assert (
        "2 new replicas of replicaset/default/web are never created: "
        "forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4"
    ) in answer.warnings


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param(["scale=db:3"], 0, id="the quota is used up"),
        pytest.param(["scale=web:1", "scale=db:3"], 2, id="an earlier change frees a part of it"),
        pytest.param(["delete=web", "scale=db:6"], 3, id="an earlier change deletes a workload"),
        pytest.param(["scale=web:2", "scale=db:2", "scale=web:4"], 1, id="earlier replicas use it"),
        pytest.param(["scale=web:2", "scale=db:2", "scale=db:2"], 1, id="a change repeats an earlier one"),
    ],
)
def test_scaling_counts_the_quota_that_earlier_changes_leave(changes: list[str], want: int) -> None:
    db = running("db-0", "n2", owner="db").obj()
    answer = what_if(cluster_of(*NODES, *WEB, db, QUOTA), [parse_change(change) for change in changes])
    assert answer.counts["new"] == want


def test_the_first_line_says_how_many_new_pods_are_pending() -> None:
    answer = what_if(cluster_of(node("n1"), *WEB[:1]), [parse_change("scale=web:6")])
    assert difference_text(answer)[0] == "scale=web:6: of 6 pods, 5 are new (2 of them pending)."


def test_the_reason_of_a_pending_pod_holds_at_the_end() -> None:
    # The first pod is tried while n2 is too small for it only in cpu; the second one then takes the last place for a pod.
    small = make_node("n2").capacity(cpu="2", memory="8Gi", pods="1").zone("b").obj()
    pods = [
        running("first", "n1", cpu="3", owner="first", priority=9).obj(),
        running("second", "n1", cpu="1", owner="second").obj(),
    ]
    answer = what_if(cluster_of(node("n1"), small, *pods), [parse_change("remove-nodes=n1")])
    assert [(row.pod, row.kind, row.after) for row in answer.differences] == [
        ("default/second", "moved", "n2"),
        ("default/first", "waits", ""),
    ]
    assert answer.differences[1].reason == "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods."


def test_an_evicted_pod_of_a_daemon_set_waits_for_its_node() -> None:
    agent = running("agent-1", "n1", owner="agent", kind="DaemonSet", cpu="1").obj()
    top = running("top", "n2", owner="top", cpu="4", priority=5).obj()
    answer = what_if(cluster_of(node("n1"), node("n2"), agent, top), [parse_change("remove-nodes=n2")])
    assert kinds(answer) == {"top": "moved", "agent-1": "waits"}
    assert answer.evictions[0].pod == "default/agent-1"
    # On the remaining nodes of a larger cluster there is room, but a DaemonSet creates its pod for one node.
    items = (node("n1"), node("n2"), node("n3", cpu="2"), agent, top)
    answer = what_if(cluster_of(*items), [parse_change("remove-nodes=n2")])
    row = next(row for row in answer.differences if row.pod == "default/agent-1")
    assert (row.kind, row.after) == ("waits", "")
    assert "1 Insufficient cpu" in row.reason


def test_a_pod_without_tolerations_is_gone_because_of_the_taint() -> None:
    answer = what_if(cluster_of(*NODES, AGENT), [parse_change("taint=n1:x=y:NoExecute")])
    assert [(row.pod, row.reason) for row in answer.differences] == [
        ("default/agent-1", "it does not tolerate the taint x=y:NoExecute")
    ]


class _Output:
    """Plugin results with fixed scores of two nodes."""

    def __init__(self, **points: tuple[int, int]) -> None:
        self._points = points

    def rejection(self, node: str) -> tuple[str, str] | None:
        return None

    def points(self, node: str) -> dict[str, int]:
        return {plugin: pair[node == "n2"] for plugin, pair in self._points.items()}


def test_an_earlier_preference_has_the_points_of_the_earlier_decision() -> None:
    before, after = _Output(X=(40, 47), Y=(10, 10)), _Output(X=(50, 51), Y=(0, 90))
    assert already_better(before, after, "n1", "n2") == (True, "X", 7)
    assert already_better(after, _Output(X=(9, 0), Y=(0, 0)), "n1", "n2") == (True, "Y", 90)


def test_moves_by_preemption_name_the_pods_that_take_part() -> None:
    # Before, the waiting pod evicts low from n2. With n3, it needs no eviction; without n2, it evicts other from n1.
    items = (
        node("n1"),
        node("n2", zone="b"),
        running("other", "n1", cpu="3", owner="other", priority=5).obj(),
        running("low", "n2", cpu="3", owner="low").obj(),
        make_pod("top").req(cpu="3", memory="256Mi").priority(9).owner("ReplicaSet", "top").obj(),
    )
    larger = what_if(cluster_of(*items), [parse_change("add-nodes=1:cpu=4,memory=8Gi")])
    assert [(row.pod, row.kind, row.plugin, row.reason) for row in larger.differences] == [
        ("default/top", "moved", "DefaultPreemption", "before, it preempted default/low on n2"),
        ("default/low", "placed", "DefaultPreemption", "before, it was evicted for default/top"),
    ]
    assert difference_text(larger)[0].endswith("1 moves, 1 gets a node; no pod evicted (1 before).")
    smaller = what_if(cluster_of(*items), [parse_change("cordon=n2")])
    assert [(row.pod, row.kind, row.reason.partition(":")[0]) for row in smaller.differences] == [
        ("default/top", "moved", "it preempts default/other there"),
        ("default/other", "waits", "0/2 nodes are available"),
        ("default/low", "placed", "before, it was evicted for default/top"),
    ]
    assert difference_text(smaller)[0].endswith("; 1 pod evicted in both cases.")


def test_static_pods_have_no_workload() -> None:
    static = running("proxy", "n1").annotation({"kubernetes.io/config.mirror": "x"}).owner("Node", "n1").obj()
    answer = what_if(cluster_of(*NODES, static), [parse_change("remove-nodes=n1")])
    assert [(row.pod, row.workload) for row in answer.differences] == [("default/proxy", "")]


def test_a_nominated_pod_is_restarted() -> None:
    waits = make_pod("web-9").req(cpu="1").nominated("n1").priority(1).owner("ReplicaSet", "web").obj()
    answer = what_if(cluster_of(*NODES, *WEB, waits), [parse_change("restart=web")])
    assert answer.counts["waits"] == 0


def test_new_pods_with_a_scheduling_gate_name_it() -> None:
    gated = make_pod("web-9").gate("example.com/wait").owner("ReplicaSet", "web").obj()
    answer = what_if(cluster_of(*NODES, gated), [parse_change("scale=web:2")])
    assert [row.reason for row in answer.differences] == ["waiting for scheduling gates: [example.com/wait]"]


def test_terminating_pods_count_and_are_named() -> None:
    dying = running("dying", "n1", owner="web").terminating().obj()
    answer = what_if(cluster_of(*NODES, dying), [parse_change("cordon=n1")])
    assert [*answer.assumptions] == ["1 terminating pod still counts on its node"]


def test_a_preempting_pod_gets_the_room_of_a_terminating_one() -> None:
    dying = running("dying", "n1", owner="web", cpu="3").terminating().obj()
    top = running("top", "n2", owner="top", cpu="3", priority=5).obj()
    items = (node("n1"), node("n2", zone="b"), dying, top)
    answer = what_if(cluster_of(*items), [parse_change("remove-nodes=n2")])
    assert [(row.pod, row.kind, row.after) for row in answer.differences] == [
        ("default/top", "moved", "n1"),
        ("default/dying", "gone", ""),
    ]
    assert answer.differences[1].reason == "it was terminating, and another pod waited for its end"
    # If this happens without the change, too, the terminating pod is not new after it.
    waits = make_pod("first").req(cpu="3", memory="256Mi").priority(9).obj()
    answer = what_if(cluster_of(node("n1"), dying, waits), [parse_change("add-nodes=1:cpu=4,memory=8Gi")])
    assert [(row.pod, row.kind, row.after) for row in answer.differences] == [("default/first", "moved", "added-1")]


def test_added_nodes_replace_those_that_a_later_change_selects() -> None:
    cluster = cluster_of(node("n1", pool="x"), node("n2", pool="x"), *WEB[:2])
    changes = [parse_change(text) for text in ("add-nodes=1:like=n1", "remove-nodes=label:pool=x")]
    answer = what_if(cluster, changes)
    assert {row.pod: row.after for row in answer.differences} == {
        "default/web-0": "added-1",
        "default/web-1": "added-1",
    }
    assert "remove-nodes=label:pool=x does not select nodes that are added before" in answer.assumptions
    assert what_if(cluster, [*changes, parse_change("remove-nodes=added-1")]).counts["waits"] == 2
    with pytest.raises(InputError, match=r"got 'added-\*', which only matches nodes that are added before"):
        what_if(cluster, [*changes, parse_change("drain=added-*")])
    with pytest.raises(InputError, match="that an earlier change removes; try add-nodes=1:like=n1 as the first change"):
        what_if(cluster, changes[::-1])


def test_new_pods_of_daemon_sets_name_their_workload() -> None:
    answer = what_if(cluster_of(*NODES, AGENT), [parse_change("add-nodes=1:cpu=2,memory=2Gi")])
    assert [(row.kind, row.workload) for row in answer.differences] == [("new", "daemonset/default/agent")]


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param(["new"], "applied deployment/default/new: its", id="one"),
        pytest.param(["new", "newer"], "2 applied workloads: their", id="several"),
    ],
)
def test_applied_workloads_are_reported_as_without_effect_on_pods(names: list[str], want: str) -> None:
    pod = {"metadata": {"labels": {"app": "new"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "new"}}, "template": pod}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
    made = [make_object({**document, "metadata": {"name": name, "namespace": "default"}}) for name in names]
    answer = what_if(cluster_of(*NODES, *WEB), [Change("apply", "new.yaml", objects=tuple(made))])
    assert not answer.differences
    notes = [each for each in answer.assumptions if each.startswith("no controller")]
    assert notes == [f"no controller acts on the {want} pods are neither created nor replaced"]
