"""Trials leave the cluster unchanged, whatever they tried."""

from __future__ import annotations

import random

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.answers.instant_host import Change
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing.object_builders import make_claim, make_storage_class, make_volume


def cluster_of(pods: int) -> Cluster:
    nodes = [
        make_node(f"n{number}").capacity(cpu="8", memory="16Gi").zone("ab"[number % 2]).obj() for number in range(6)
    ]
    bound = [
        make_pod(f"p{number}")
        .req(cpu="2")
        .label(app="ab"[number % 2])
        .node(f"n{number % 6}")
        .owner("ReplicaSet", "r")
        .obj()
        for number in range(pods)
    ]
    storage = [make_storage_class("slow", wait=True), make_volume("v").storage_class("slow").obj()]
    return Cluster(
        [*nodes, *bound, *storage, make_claim("c").storage_class("slow").obj()], record_level=RecordLevel.OFF
    )


def test_random_trials_leave_the_state_unchanged() -> None:
    cluster = cluster_of(18)
    trial, rng = cluster.trial(), random.Random(7)
    before = {key: info.pod for key, info in trial.state.pods.items()}
    usage = trial.state.usage.copy()
    for _ in range(60):
        changes: list[Change] = []
        for key in rng.sample(sorted(before), rng.randint(0, 3)):
            changes.append((before[key], None))
        name = f"n{rng.randint(0, 5)}"
        old = trial.node(name)
        assert isinstance(old, Node)
        if rng.random() < 0.5:
            changes.append((old, make_node(name).capacity(cpu="16", memory="16Gi").unschedulable().obj()))
        if rng.random() < 0.3:
            changes.append((None, make_node("more").capacity(cpu="32").obj()))
        pod = make_pod("x").req(cpu=str(rng.randint(1, 12))).priority(rng.choice((0, 10)))
        pods: list[Pod] = [pod.claim("c").obj() if rng.random() < 0.3 else pod.obj()]
        trial.attempt(pods, changes, preempts=rng.random() < 0.5)
        assert {key: info.pod for key, info in trial.state.pods.items()} == before
        trial.state.check_invariants()
    assert (trial.state.usage[:, :6] == usage[:, :6]).all()
    assert trial.attempt([make_pod("x").req(cpu="2").obj()]).fits


def test_displaced_pods_are_rescheduled_only_if_a_controller_recreates_them() -> None:
    cluster = cluster_of(6)
    cluster.add(make_pod("bare").req(cpu="1").node("n0").obj())
    trial = cluster.trial()
    gone = [trial.bound("default/p0"), trial.bound("default/bare")]
    changes: list[Change] = [(pod, None) for pod in gone]
    result = trial.attempt([make_pod("x").req(cpu="8").obj()], changes)
    assert result.placed[0].node == "n0"
    moved = {each.pod: bool(each.node) for each in result.displaced}
    assert moved == {"default/p0": True, "default/bare": False}


def test_a_nominated_pod_uses_its_node_but_is_not_scheduled() -> None:
    nominated = make_pod("first").req(cpu="3").priority(10).nominated("a").obj()
    cluster = Cluster([make_node("a").capacity(cpu="4").obj(), nominated], record_level=RecordLevel.OFF)
    trial = cluster.trial()
    low = make_pod("x").req(cpu="2")
    assert not trial.attempt([low.obj()]).fits
    assert trial.attempt([low.priority(20).obj()]).fits
    assert "default/first" not in trial.state.pods


def test_single_plugins_can_be_disabled_in_a_trial() -> None:
    cluster = Cluster([make_node("a").capacity(cpu="4").taint("gpu").obj()], record_level=RecordLevel.OFF)
    trial, pod = cluster.trial(), make_pod("x").req(cpu="8").obj()
    for without, want in (
        ((), ""),
        (("TaintToleration",), ""),
        (("TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation"), "a"),
    ):
        decision = trial.decide(pod, without)
        assert decision is not None
        assert decision.record.node == want
