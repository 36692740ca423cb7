"""Pods that are supposed to be gone or to come change counts and ports of their own row, as if they had gone or come."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bayplan.objects.requests import HostPort
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo
from bayplan.state.supposed_pods import PodKinds, SupposedPods
from bayplan.testing.builders import make_node, make_pod

WANTED = HostPort("0.0.0.0", "TCP", 80)


def make_info(state: ClusterState, random: Random, name: str, port: int) -> PodInfo:
    builder = make_pod(name).label(app=random.choice("ab"))
    if random.random() < 0.5:
        builder.pod_anti_affinity({"app": "a"})
    return state.pod_info((builder.host_port(port) if port else builder).obj())


@pytest.mark.parametrize("seed", range(8))
def test_counts_and_ports_are_those_of_a_trial(seed: int) -> None:
    random, state, kinds = Random(seed), ClusterState(), PodKinds()
    matching = state.matching_counter("a", lambda pod_class: pod_class.labels.get("app") == "a")
    for row in range(4):
        state.add_node(make_node(f"n{row}").obj())
        for number in range(random.randrange(5)):
            port = 80 if not number and random.random() < 0.5 else random.choice((0, 81 + number))
            state.place(make_info(state, random, f"p{row}-{number}", port), row)
    more = [[make_info(state, random, f"q{row}", random.choice((0, 80)))] * random.randrange(2) for row in range(4)]
    index = np.arange(4, dtype=np.intp)
    present = np.zeros((5, 4), dtype=np.intp)
    gone = np.zeros((5, 4), dtype=np.bool_)
    for row in range(4):
        for slot, info in enumerate(state.pods_on[row].values()):
            present[slot, row], gone[slot, row] = kinds.number(info), random.random() < 0.5
    owned = [counter for info in state.pods.values() for counter in info.owned_counters][:1]
    counters = [matching, *owned]
    pods = SupposedPods(state, index, more, kinds, present, gone)
    before = [counter.values[:4].copy() for counter in counters]
    with state.trial():
        for row in range(4):
            leaving = [key for slot, key in enumerate(state.pods_on[row]) if gone[slot, row]]
            for key in leaving:
                state.remove_pod(key)
            for info in more[row]:
                state.place(info, row)
        want = [(counter.values[:4] - old).tolist() for counter, old in zip(counters, before, strict=True)]
        taken = [state.host_ports.conflict_on(row, WANTED) for row in range(4)]
    assert [pods.count_change(counter).tolist() for counter in counters] == want
    assert pods.host_port_conflicts(WANTED).tolist() == taken
    some = np.array([2, 0], dtype=np.intp)
    part = pods.at(some, [more[2], more[0]])
    assert part.count_change(matching).tolist() == [want[0][2], want[0][0]]
    assert part.host_port_conflicts(WANTED).tolist() == [taken[2], taken[0]]


def test_no_rows_have_no_changes() -> None:
    state = ClusterState()
    counter = state.matching_counter("a", lambda pod_class: True)
    pods = SupposedPods(state, np.zeros(0, dtype=np.intp), [])
    assert pods.count_change(counter).dtype == np.int64
    assert pods.host_port_conflicts(WANTED).tolist() == []
