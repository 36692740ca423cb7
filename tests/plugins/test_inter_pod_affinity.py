"""InterPodAffinity, rule by rule, and against a naive implementation of the documentation on random small clusters."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.framework.configuration.plugin_arguments import InterPodAffinityArgs
from bayplan.framework.status import Code, Status
from bayplan.objects.pod import Pod
from bayplan.plugins.inter_pod_affinity import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
)
from bayplan.state.views import Rows
from bayplan.testing import PodBuilder, make_node, make_pod
from bayplan.testing.row_results import verdicts_of
from tests.oracle import inter_pod_affinity as oracle
from tests.oracle.world import World
from tests.plugins.asking import Asked
from tests.plugins.scenes import HOST, ZONE, Scene, affine_pods, change_scene, scenes

REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
LIKES, DISLIKES = "podAffinity", "podAntiAffinity"
AFFINITY, ANTI, EXISTING = (REASON_AFFINITY,), (REASON_ANTI_AFFINITY,), (REASON_EXISTING_ANTI_AFFINITY,)
EXISTS_NOT = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}


def term(key: str = ZONE, app: str | None = "a", **more: Any) -> dict[str, Any]:
    selector = {} if app is None else {"matchLabels": {"app": app}}
    return {"topologyKey": key, "labelSelector": selector, **more}


def pod(name: str = "p", app: str = "", namespace: str = "default") -> PodBuilder:
    return make_pod(name, namespace).label({"app": app} if app else {})


ARGUMENTS = InterPodAffinityArgs(hard_pod_affinity_weight=1)


def wants(kind: str, *terms: dict[str, Any], app: str = "", name: str = "p", namespace: str = "default") -> Pod:
    return pod(name, app, namespace).spec(affinity={kind: {REQUIRED: list(terms)}}).obj()


def prefers(kind: str, *terms: tuple[int, dict[str, Any]], app: str = "", name: str = "p") -> Pod:
    weighted = [{"weight": weight, "podAffinityTerm": item} for weight, item in terms]
    return pod(name, app).spec(affinity={kind: {PREFERRED: weighted}}).obj()


def scene(*running: tuple[Pod, str]) -> Scene:
    """Return nodes a1 and a2 in zone a, b1 in zone b and `no` in none, with pods."""
    found = Scene()
    found.set_namespace("default", {})
    found.set_namespace("red", {"team": "red"})
    for name in ("a1", "a2", "b1"):
        found.set_node(make_node(name).zone(name[0]).obj())
    found.set_node(make_node("no").obj())
    for item, name in running:
        found.place(item, name)
    return found


def refused(item: Pod, *running: tuple[Pod, str]) -> dict[str, tuple[str, ...]]:
    """Return the reasons of each node that rejects a pod; also compare with the naive implementation."""
    where = scene(*running)
    asked = Asked(InterPodAffinity, item, where.state, ARGUMENTS)
    check(asked, where)
    return {name: reasons for name, reasons in asked.reasons().items() if reasons}


def everywhere(reasons: tuple[str, ...], *but: str) -> dict[str, tuple[str, ...]]:
    return {name: reasons for name in ("a1", "a2", "b1", "no") if name not in but}


A = (pod("r", "a").obj(), "a1")


@pytest.mark.parametrize(
    ("item", "running", "want"),
    [
        pytest.param(
            wants(LIKES, term()),
            [A],
            everywhere(AFFINITY, "a1", "a2"),
            id="a pod joins the zone of the pods in its affinity",
        ),
        pytest.param(
            wants(LIKES, term(HOST)),
            [A],
            everywhere(AFFINITY, "a1"),
            id="a pod joins the node of the pods in its affinity",
        ),
        pytest.param(wants(LIKES, term()), [], everywhere(AFFINITY), id="there is no pod to join"),
        pytest.param(
            wants(LIKES, term(), app="a"),
            [],
            {"no": AFFINITY},
            id="the first pod of its kind fits anywhere with the key",
        ),
        pytest.param(
            wants(LIKES, term(), term(HOST), app="a"),
            [(pod("r", "a").obj(), "no")],
            everywhere(AFFINITY),
            id="it is not the first if one of the keys has its kind",
        ),
        pytest.param(
            wants(LIKES, term(), app="a"),
            [(pod("r", "a").obj(), "no")],
            {"no": AFFINITY},
            id="a pod outside all domains does not start a group",
        ),
        pytest.param(
            wants(LIKES, term(app="a"), term(app="b")),
            [A, (pod("s", "b").obj(), "a2")],
            everywhere(AFFINITY),
            id="one pod must match all terms at once",
        ),
        pytest.param(
            wants(LIKES, term(app=None)), [A], everywhere(AFFINITY, "a1", "a2"), id="an empty selector matches all pods"
        ),
        pytest.param(
            wants(LIKES, {"topologyKey": ZONE}, app="a"),
            [A],
            everywhere(AFFINITY),
            id="a missing selector matches no pod",
        ),
        pytest.param(
            wants(DISLIKES, term()),
            [A],
            {"a1": ANTI, "a2": ANTI},
            id="a pod avoids the zone of pods in its anti-affinity",
        ),
        pytest.param(
            wants(DISLIKES, term(app="a"), term(HOST, app="b")),
            [A, (pod("s", "b").obj(), "b1")],
            {"a1": ANTI, "a2": ANTI, "b1": ANTI},
            id="anti-affinity holds term by term",
        ),
        pytest.param(wants(DISLIKES, term(), app="a"), [], {}, id="a pod does not reject itself"),
        pytest.param(
            wants(DISLIKES, term()), [(pod("r", "a").obj(), "no")], {}, id="a node without the key is not excluded"
        ),
        pytest.param(
            pod("p", "x").obj(),
            [(wants(DISLIKES, term(app="x"), name="r"), "a2")],
            {"a1": EXISTING, "a2": EXISTING},
            id="anti-affinity is symmetric: running pods reject others",
        ),
        pytest.param(
            pod("p", "x").obj(),
            [(wants(DISLIKES, term(app="x"), name="r"), "no")],
            {},
            id="a running pod outside all domains rejects no pod",
        ),
        pytest.param(
            pod("p", "x").obj(),
            [(wants(LIKES, term(app="x"), name="r"), "a2")],
            {},
            id="affinity is not symmetric in filters",
        ),
        pytest.param(
            wants(DISLIKES, term(app="x"), app="x"),
            [(wants(DISLIKES, term(app="x"), app="x", name="r"), "a1")],
            {"a1": ANTI, "a2": ANTI},
            id="its own anti-affinity is reported before that of running pods",
        ),
        pytest.param(
            pod("p", "a").spec(affinity={LIKES: {REQUIRED: [term()]}, DISLIKES: {REQUIRED: [term(HOST)]}}).obj(),
            [A],
            {"a1": ANTI, "b1": AFFINITY, "no": AFFINITY},
            id="near, but not on the same node",
        ),
    ],
)
def test_filter_rejects_nodes_that_violate_required_terms(
    item: Pod, running: list[tuple[Pod, str]], want: dict[str, tuple[str, ...]]
) -> None:
    assert refused(item, *running) == want


def test_missing_affinity_is_unresolvable_even_if_anti_affinity_fails_too() -> None:
    where = scene(A, (wants(DISLIKES, term(HOST, app="x"), name="s"), "b1"))
    item = pod("p", "x").spec(affinity={LIKES: {REQUIRED: [term()]}}).obj()
    asked = Asked(InterPodAffinity, item, where.state)
    assert asked.reasons()["b1"] == AFFINITY
    assert verdicts_of(asked.plugin, asked.spec, None, _all(where)).tolist() == [0x8008] * 4


def _all(where: Scene) -> Any:
    return Rows(where.state)


ELSEWHERE = (pod("r", "a", "red").obj(), "a1")
UNKNOWN = (pod("r", "a", "unknown").obj(), "a1")


@pytest.mark.parametrize(
    ("more", "running", "want"),
    [
        pytest.param({}, ELSEWHERE, False, id="a term selects its own namespace"),
        pytest.param({"namespaces": ["red"]}, ELSEWHERE, True, id="a term selects the namespaces that it names"),
        pytest.param({"namespaces": ["red"]}, A, False, id="a term that names namespaces does not select its own"),
        pytest.param(
            {"namespaceSelector": {}}, ELSEWHERE, True, id="an empty namespace selector selects all namespaces"
        ),
        pytest.param(
            {"namespaceSelector": {}}, UNKNOWN, True, id="an empty namespace selector also selects missing namespaces"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "red"}}}, ELSEWHERE, True, id="a selector matches labels"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "red"}}}, A, False, id="of namespaces that have them"
        ),
        pytest.param(
            {"namespaces": ["default"], "namespaceSelector": {"matchLabels": {"team": "red"}}},
            A,
            True,
            id="names and selector add up",
        ),
        pytest.param(
            {"namespaceSelector": EXISTS_NOT},
            ELSEWHERE,
            True,
            id="one that matches no labels selects all namespaces, as upstream",
        ),
    ],
)
def test_terms_of_the_incoming_pod_match_the_listed_and_selected_namespaces(
    more: dict[str, Any], running: tuple[Pod, str], want: bool
) -> None:
    assert ("a1" in refused(wants(DISLIKES, term(**more)), running)) is want


@pytest.mark.parametrize(
    ("namespace", "selector", "want"),
    [
        pytest.param("red", EXISTS_NOT, False, id="terms of running pods are matched properly"),
        pytest.param("default", EXISTS_NOT, True, id="to namespaces without the label"),
        pytest.param("unknown", EXISTS_NOT, True, id="or that do not exist"),
        pytest.param("red", {"matchLabels": {"team": "red"}}, True, id="and by labels"),
    ],
)
def test_namespace_selectors_of_running_pods_match_the_incoming_pods_namespace(
    namespace: str, selector: dict[str, Any], want: bool
) -> None:
    owner = wants(DISLIKES, term(app="x", namespaceSelector=selector), name="r")
    assert ("a1" in refused(pod("p", "x", namespace).obj(), (owner, "a1"))) is want


def test_an_invalid_label_selector_rejects_the_pod() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    where = scene(A)
    answer = Asked(
        InterPodAffinity, wants(LIKES, {"topologyKey": ZONE, "labelSelector": broken}), where.state
    ).pre_filter()
    assert isinstance(answer, Status)
    assert answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert answer.message.startswith("parsing pod: ")


# Scores.


def raw_and_final(
    item: Pod, *running: tuple[Pod, str], hard_weight: int = 1, ignores: bool = False
) -> tuple[list[int], list[int]] | None:
    """Return raw and normalised scores of a1, a2, b1 and `no`."""
    where = scene(*running)
    arguments = InterPodAffinityArgs(
        hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignores
    )
    found = Asked(InterPodAffinity, item, where.state, arguments).scores(list(where.world.nodes))
    return None if found is None else (list(found[0].values()), list(found[1].values()))


X = pod("p", "x").obj()
LIKED_BY = (prefers(LIKES, (5, term(app="x")), name="s"), "b1")


@pytest.mark.parametrize(
    ("item", "running", "options", "want"),
    [
        pytest.param(X, [A], {}, None, id="nothing matches"),
        pytest.param(
            prefers(LIKES, (5, term())), [A], {}, ([5, 5, 0, 0], [100, 100, 0, 0]), id="a preference of its own"
        ),
        pytest.param(
            prefers(DISLIKES, (5, term())), [A], {}, ([-5, -5, 0, 0], [0, 0, 100, 100]), id="raw scores may be negative"
        ),
        pytest.param(
            prefers(LIKES, (2, term()), (1, term(HOST))),
            [A],
            {},
            ([3, 2, 0, 0], [100, 66, 0, 0]),
            id="cut to whole numbers",
        ),
        pytest.param(
            prefers(LIKES, (2, term())),
            [A, (pod("s", "a").obj(), "a2")],
            {},
            ([4, 4, 0, 0], [100, 100, 0, 0]),
            id="every pod counts",
        ),
        pytest.param(X, [LIKED_BY], {}, ([0, 0, 5, 0], [0, 0, 100, 0]), id="preferences of running pods count"),
        pytest.param(X, [LIKED_BY], {"ignores": True}, None, id="unless they are ignored"),
        pytest.param(
            prefers(LIKES, (1, term()), app="x"),
            [A, LIKED_BY],
            {"ignores": True},
            ([1, 1, 5, 0], [20, 20, 100, 0]),
            id="which holds only for pods without preferences",
        ),
        pytest.param(
            X,
            [(wants(LIKES, term(app="x"), name="s"), "b1")],
            {},
            ([0, 0, 1, 0], [0, 0, 100, 0]),
            id="what running pods require weighs 1",
        ),
        pytest.param(
            X,
            [(wants(LIKES, term(app="x"), name="s"), "b1")],
            {"hard_weight": 9},
            ([0, 0, 9, 0], [0, 0, 100, 0]),
            id="or as configured",
        ),
        pytest.param(X, [(wants(LIKES, term(app="x"), name="s"), "b1")], {"hard_weight": 0}, None, id="or nothing"),
        pytest.param(
            X, [(wants(DISLIKES, term(app="x"), name="s"), "b1")], {}, None, id="required anti-affinity is not scored"
        ),
        pytest.param(
            prefers(LIKES, (3, term(HOST))),
            [A, (pod("s", "a").obj(), "a2"), (pod("t", "a").obj(), "b1"), (pod("u", "a").obj(), "no")],
            {},
            ([3, 3, 3, 3], [0, 0, 0, 0]),
            id="0 for all if all are equal",
        ),
        pytest.param(
            prefers(LIKES, (3, term()), (3, term(app=None))),
            [A, (prefers(DISLIKES, (6, term(app=None)), name="s"), "a2")],
            {},
            ([3, 3, 0, 0], [100, 100, 0, 0]),
            id="preferences and anti-preferences add up",
        ),
        pytest.param(
            prefers(LIKES, (3, term())),
            [(pod("r", "a").obj(), "no")],
            {},
            None,
            id="a pod in no domain matches nothing",
        ),
    ],
)
def test_scores_sum_preferred_terms_of_both_sides(
    item: Pod, running: list[tuple[Pod, str]], options: dict[str, Any], want: tuple[list[int], list[int]] | None
) -> None:
    assert raw_and_final(item, *running, **options) == want


def test_opposite_weights_do_not_skip_the_score() -> None:
    item = pod().spec(
        affinity={
            LIKES: {PREFERRED: [{"weight": 4, "podAffinityTerm": term()}]},
            DISLIKES: {PREFERRED: [{"weight": 4, "podAffinityTerm": term()}]},
        }
    )
    assert raw_and_final(item.obj(), A) == ([0, 0, 0, 0], [0, 0, 0, 0])


def test_terminating_pods_still_count() -> None:
    running = A[0]
    ending = replace(running, metadata=replace(running.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert refused(wants(DISLIKES, term()), (ending, "a1")) == {"a1": ANTI, "a2": ANTI}


# Compared with the naive implementation.

REASONS = {
    oracle.AFFINITY: REASON_AFFINITY,
    oracle.ANTI_AFFINITY: REASON_ANTI_AFFINITY,
    oracle.EXISTING: REASON_EXISTING_ANTI_AFFINITY,
}


def check(asked: Asked, scene: Scene, hard_weight: int = 1, ignore_existing: bool = False) -> None:
    """Make sure that the plugin agrees with the naive implementation."""
    pod, world = asked.pod, scene.world
    objections = {name: oracle.objection(pod, name, world) for name in world.nodes}
    assert asked.skips_filter() is oracle.skips_filter(pod, world)
    assert asked.reasons() == {name: (REASONS[found],) if found else None for name, found in objections.items()}
    feasible = [name for name, found in objections.items() if not found] or list(world.nodes)
    found = asked.scores(feasible)
    if not oracle.weights(pod, world, hard_weight, ignore_existing):
        assert found is None
        return
    raw = {name: oracle.raw_score(pod, name, world, hard_weight, ignore_existing) for name in feasible}
    assert found == (raw, oracle.normalized(raw))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_filters_and_scores_match_the_naive_rules_while_the_cluster_changes(data: st.DataObject) -> None:
    scene = data.draw(scenes(affine_pods()))
    hard_weight, ignores = data.draw(st.sampled_from(((1, False), (0, False), (50, True))))
    arguments = InterPodAffinityArgs(
        hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignores
    )
    asked = [Asked(InterPodAffinity, data.draw(affine_pods()), scene.state, arguments) for _ in range(2)]
    for step in range(data.draw(st.integers(1, 4))):
        for one in asked:
            check(one, scene, hard_weight, ignores)
        change_scene(data.draw, scene, affine_pods(), 10 + step)
    scene.state.check_invariants()
    for one in asked:
        check(one, scene, hard_weight, ignores)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_filters_follow_changes_in_a_trial_and_their_undo(data: st.DataObject) -> None:
    scene = data.draw(scenes(affine_pods()))
    asked = Asked(InterPodAffinity, data.draw(affine_pods()), scene.state, ARGUMENTS)
    answer = asked.pre_filter()
    if isinstance(answer, Status):
        return
    pods = scene.world.pods
    with scene.state.trial():
        changed = World(dict(scene.world.nodes), dict(pods), dict(scene.world.namespaces))
        for key in data.draw(st.lists(st.sampled_from(sorted(pods)), max_size=2, unique=True)) if pods else []:
            scene.state.remove_pod(key)
            del changed.pods[key]
        if data.draw(st.booleans()):
            newcomer, name = data.draw(affine_pods("newcomer")), data.draw(st.sampled_from(sorted(changed.nodes)))
            info = scene.state.pod_info(newcomer)
            scene.state.place(info, scene.state.nodes.row_of[name])
            changed.pods[info.key] = (newcomer, name)
        params = asked.plugin.params_after_changes(asked.spec, answer.params, scene.state)
        found = {name: oracle.objection(asked.pod, name, changed) for name in changed.nodes}
        assert asked.reasons(params) == {name: (REASONS[item],) if item else None for name, item in found.items()}
    check(asked, scene)


# All clusters of a small scope.

TERMS = [term(ZONE, "a"), term(HOST, "b", namespaceSelector=EXISTS_NOT)]
KINDS = [(LIKES, REQUIRED), (LIKES, PREFERRED), (DISLIKES, REQUIRED), (DISLIKES, PREFERRED)]


def variants(name: str) -> list[Pod]:
    """Return pods of two labels with no term, or with one of each kind."""
    found = [pod(name, app).obj() for app in "ab"]
    for (kind, strength), item in product(KINDS, TERMS):
        rule: Any = item if strength == REQUIRED else {"weight": 3, "podAffinityTerm": item}
        found.append(
            pod(name, "a", "red" if item is TERMS[1] else "default").spec(affinity={kind: {strength: [rule]}}).obj()
        )
    return found


@pytest.mark.parametrize("zones", [("z", "z"), ("z", "y"), ("z", "")], ids=["one zone", "two zones", "one in none"])
def test_results_match_the_naive_rules_for_two_nodes_with_two_running_pods(zones: tuple[str, str]) -> None:
    where = Scene()
    where.set_namespace("default", {})
    where.set_namespace("red", {"team": "red"})
    for name, zone in zip(("n0", "n1"), zones, strict=True):
        where.set_node((make_node(name).zone(zone) if zone else make_node(name)).obj())
    asked = [Asked(InterPodAffinity, item, where.state, ARGUMENTS) for item in variants("p")]
    for first, second in product(variants("r"), variants("s")):
        where.place(first, "n0")
        where.place(second, "n1" if second.metadata.labels["app"] == "a" else "n0")
        for one in asked:
            one.forms = False
            check(one, where)
    where.state.check_invariants()
