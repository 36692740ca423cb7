"""Pods with different claims share results of the volume plugins, and shared results equal those of fresh plugins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.engine.rule_result import FilterResult, RuleResults
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import ERROR_BIT, UNRESOLVABLE_BIT
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.row_results import verdicts_of
from tests.plugins.builders import make_node, make_plugin, make_state
from tests.plugins.volume_worlds import (
    ZONE,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    put,
    using,
    with_volumes,
)

KINDS = (VolumeBinding, VolumeZone, VolumeRestrictions, NodeVolumeLimits)
NAMES = ("n0", "n1", "n2")
FLAGS = ERROR_BIT | UNRESOLVABLE_BIT


def csi_volume(name: str, *, handle: str = "", zone: str = "", host: str = "") -> KubernetesObject:
    """Return a volume of the driver csi.a."""
    return make_volume(
        name,
        nodes=(host,) if host else (),
        labels={ZONE: zone} if zone else {},
        spec={"csi": {"driver": "csi.a", "volumeHandle": handle or name}},
    )


def cluster(claims: int = 4) -> ClusterState:
    """Return three nodes, of which the last has no CSINode, and bound claims c0, c1, ..."""
    nodes = [make_node(name, labels={"host": name, ZONE: name[1]}) for name in NAMES]
    state = put(make_state(nodes), make_csi_node("n0", {"csi.a": 1}), make_csi_node("n1", {"csi.a": 2}))
    for number in range(claims):
        name = f"c{number}"
        put(state, csi_volume(name), make_claim(name, volume=name))
    return state


class SharedPluginResults:
    """The plugins of one profile, with the results that the plans of a scheduler would share."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.results = RuleResults(state)
        self.plugins: list[Any] = [make_plugin(kind, state) for kind in KINDS]
        # Keeps references to the plans' results, because results are cached only as long as something refers to them.
        self.held: list[object] = []

    def ask(self, pod: Pod) -> dict[str, Any]:
        """Return the results of the filters that PreFilter leaves in, up to date, by plugin."""
        found = {}
        for plugin in self.plugins:
            spec = plugin.compile(pod, self.state)
            answer = plugin.pre_filter(spec, self.state, CycleState())
            if isinstance(answer, PreFilterResult):
                result = found[plugin.name] = self.results.result(FilterResult, plugin, spec)
                result.refresh(answer.params, None)
                self.held.append(result)
        return found


def results_of(plugin: Any, spec: object, params: object, codes: Codes) -> list[tuple[int, tuple[str, ...]]]:
    """Return the flags and reasons of each node's verdict, not its number, which differs between plugins."""
    return [(code & FLAGS, plugin.reasons(spec, params, code)) if code else (0, ()) for code in codes.tolist()]


def fresh(state: ClusterState, kind: type[Any], pod: Pod) -> list[tuple[int, tuple[str, ...]]]:
    """Return the results of a new plugin."""
    plugin = make_plugin(kind, state)
    spec = plugin.compile(pod, state)
    params = plugin.pre_filter(spec, state, CycleState()).params
    return results_of(plugin, spec, params, verdicts_of(plugin, spec, params, Rows(state)))


def test_claims_with_similar_volumes_share_results() -> None:
    asking = SharedPluginResults(cluster())
    asking.ask(using("c0"))
    first = asking.ask(using("c1"))
    epochs = {name: result.epoch for name, result in first.items()}
    second = asking.ask(using("c2"))
    assert set(first) == {"VolumeBinding", "NodeVolumeLimits"}
    assert all(second[name] is first[name] and second[name].epoch == epochs[name] for name in first)


@pytest.mark.parametrize(
    ("other", "moved"),
    [
        pytest.param(csi_volume("c1"), set(), id="a volume equal to the first"),
        pytest.param(csi_volume("c1", host="n1"), {"VolumeBinding"}, id="a volume of one node"),
        pytest.param(
            make_volume("c1", spec={"hostPath": {"path": "/"}}), {"NodeVolumeLimits"}, id="a volume without driver"
        ),
    ],
)
def test_results_are_recomputed_if_the_volumes_differ(other: KubernetesObject, moved: set[str]) -> None:
    state = put(cluster(), other)
    asking = SharedPluginResults(state)
    asking.ask(using("c0"))
    epochs = {name: result.epoch for name, result in asking.ask(using("c0")).items()}
    assert {name for name, result in asking.ask(using("c1")).items() if result.epoch != epochs[name]} == moved


def test_a_volume_used_by_a_pod_placed_in_a_trial_is_attached_once() -> None:
    """A volume that no pod used during PreFilter is not attached twice if a nominated pod brings it."""
    state = cluster()
    asking = SharedPluginResults(state)
    limits = asking.ask(using("c0"))["NodeVolumeLimits"]
    info = state.pod_info(with_volumes({"persistentVolumeClaim": {"claimName": "c0"}}, name="nominated"))
    n0 = state.nodes.row_of["n0"]
    with state.trial():
        state.place(info, n0)
        limits.rule.after_changes(limits.params)
        assert limits.filter_rule.filter(n0) == 0
    limits.rule.after_undo(limits.params)
    with state.trial():
        other = with_volumes({"persistentVolumeClaim": {"claimName": "c1"}}, name="nominated")
        state.place(state.pod_info(other), n0)
        limits.rule.after_changes(limits.params)
        assert limits.filter_rule.filter(n0) != 0
    limits.rule.after_undo(limits.params)
    assert limits.filter_rule.filter(n0) == 0


STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 5)),
    st.tuples(st.just("place"), st.integers(0, 5), st.sampled_from(NAMES)),
    st.tuples(st.just("remove"), st.integers(0, 20)),
    st.tuples(st.just("volume"), st.integers(0, 3), st.sampled_from(("", "0", "1")), st.sampled_from(("", "n0", "n1"))),
    st.tuples(st.just("limit"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("label"), st.sampled_from(NAMES), st.sampled_from(("0", "1", "2"))),
)


def pod_of(number: int) -> Pod:
    """Return one of six pods: with one claim, with two, or with a disk."""
    if number == 5:
        return with_volumes({"awsElasticBlockStore": {"volumeID": "d"}})
    return using(*("c0", "c1")) if number == 4 else using(f"c{number}")


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_shared_results_equal_those_of_new_plugins(steps: list[tuple[Any, ...]]) -> None:
    state = put(cluster(), make_class("later"))
    asking = SharedPluginResults(state)
    placed = 0
    for name, *arguments in [*steps, *(("ask", number) for number in range(6))]:
        if name == "ask":
            pod = pod_of(arguments[0])
            for result in asking.ask(pod).values():
                got = results_of(result.plugin, result.spec, result.params, result.values[: state.nodes.count])
                assert got == fresh(state, type(result.plugin), pod), result.name
        elif name == "place":
            placed += 1
            pod = pod_of(arguments[0])
            pod = replace(pod, metadata=replace(pod.metadata, name=f"on-{placed}"))
            state.place(state.pod_info(pod), state.nodes.row_of[arguments[1]])
        elif name == "remove" and state.pods:
            keys = list(state.pods)
            state.remove_pod(keys[arguments[0] % len(keys)])
        elif name == "volume":
            put(state, csi_volume(f"c{arguments[0]}", zone=arguments[1], host=arguments[2]))
        elif name == "limit":
            put(state, make_csi_node(arguments[0], {"csi.a": arguments[1]}))
        elif name == "label":
            node = make_node(arguments[0], labels={"host": arguments[0], ZONE: arguments[1]})
            state.update_node(node)
        state.check_invariants()
