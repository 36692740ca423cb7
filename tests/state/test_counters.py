"""Counts of pods per row and per domain are updated by each change, and equal a full count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.errors import InvariantError
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import MAX_CHANGES, Counter, DomainTable, Eligibility, Matches
from bayplan.state.pod_info import PodClass
from bayplan.state.row_log import FIRST_CAPACITY
from bayplan.testing import make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
NODES = ("n0", "n1", "n2", "n3")


def is_a(pod_class: PodClass) -> bool:
    return pod_class.labels.get("app") == "a"


def is_live(pod_class: PodClass) -> bool:
    return not pod_class.terminating and pod_class.namespace == "default"


def ssd_only(state: ClusterState) -> Eligibility:
    def make() -> Bools:
        column = state.nodes.label_column("disk")
        return column.codes[: state.nodes.count] >= 0

    return Eligibility(("disk",), make)


def add_node(state: ClusterState, name: str, zone: str, disk: str = "") -> None:
    node = make_node(name)
    if zone:
        node.zone(zone)
    if disk:
        node.label(disk=disk)
    state.add_node(node.obj())


def place(state: ClusterState, name: str, node: str, app: str = "a", namespace: str = "default") -> None:
    info = state.pod_info(make_pod(name, namespace).label(app=app).obj())
    state.place(info, state.nodes.row_of[node])


def by_zone(state: ClusterState, table: DomainTable) -> dict[str, int]:
    """Return the sums by domain; the sum of nodes without the key is under ""."""
    table.refresh()
    sums = np.asarray(table.values)
    names = [*state.nodes.label_column(ZONE).values, ""]
    assert len(sums) == len(names)
    return {str(name): int(count) for name, count in zip(names, sums, strict=True) if count}


def counted(state: ClusterState, matches: Matches, mask: Bools | None = None) -> dict[str, int]:
    """Count again, pod by pod."""
    found: dict[str, int] = {}
    for info in state.pods.values():
        node = state.nodes.nodes[info.row]
        zone = node.metadata.labels.get(ZONE) if node is not None else None
        if zone is not None and matches(info.pod_class) and (mask is None or mask[info.row]):
            found[zone] = found.get(zone, 0) + 1
    return found


def test_a_counter_counts_matching_pods_per_row() -> None:
    state = ClusterState()
    for name, zone in (("n0", "x"), ("n1", "y")):
        add_node(state, name, zone)
    counter = state.matching_counter("a", is_a)
    place(state, "p", "n0")
    place(state, "q", "n0")
    place(state, "r", "n1", app="b")
    assert counter.values[:2].tolist() == [2, 0]
    state.remove_pod("default/p")
    assert counter.values[:2].tolist() == [1, 0]


def test_a_new_counter_counts_existing_pods_and_is_shared_by_key() -> None:
    state = ClusterState()
    add_node(state, "n0", "x")
    place(state, "p", "n0")
    place(state, "q", "n0")
    counter = state.matching_counter("a", is_a)
    assert counter.values[0] == 2
    assert state.matching_counter("a", is_a) is counter
    place(state, "r", "n0")
    assert counter.values[0] == 3


def test_an_owned_counter_counts_pods_that_declare_the_term() -> None:
    state = ClusterState()
    add_node(state, "n0", "x")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "z"}}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    owner = make_pod("p").spec(affinity={"podAntiAffinity": rules}).obj()
    assert state.counters.owned_since(0) == []
    state.place(state.pod_info(owner), 0)
    place(state, "q", "n0", app="z")
    (counter,) = state.counters.owned_since(0)
    assert state.counters.owned(counter.term) is counter
    assert (counter.values[0], state.counters.owned_since(1)) == (1, [])
    state.remove_pod("default/p")
    assert counter.values[0] == 0


def test_classes_and_counters_end_with_their_pods() -> None:
    state = ClusterState()
    add_node(state, "n0", "x")
    for number in range(20):
        name = f"p{number}"
        own = make_pod(name).label(job=name).pod_anti_affinity({"job": name}, topology=ZONE).obj()
        state.place(state.pod_info(own), 0)
        counter = state.matching_counter(name, lambda pod_class, name=name: pod_class.labels.get("job") == name)  # type: ignore[misc]
        assert (counter.total, len(state._classes), len(state.counters.owned_since(0))) == (1, 1, 1)
        state.check_invariants()
        state.remove_pod(f"default/{name}")
        assert counter.total == 0
        del counter
    assert (len(state._classes), state.counters.owned_since(0), len(state.counters._matching)) == (0, [], 0)
    assert state.counters.registered == 20


def test_a_domain_table_excludes_nodes_that_lack_the_key_or_are_ineligible() -> None:
    state = ClusterState()
    for name, zone, disk in (("n0", "x", "ssd"), ("n1", "x", ""), ("n2", "", "ssd"), ("n3", "y", "ssd")):
        add_node(state, name, zone, disk)
    counter = state.matching_counter("a", is_a)
    everywhere, some = state.domain_table(ZONE, counter), state.domain_table(ZONE, counter, ssd_only(state))
    for name in NODES:
        place(state, f"p-{name}", name)
    assert by_zone(state, everywhere) == {"x": 2, "y": 1}
    assert by_zone(state, some) == {"x": 1, "y": 1}
    for name in NODES:
        place(state, f"q-{name}", name)
    assert by_zone(state, everywhere) == {"x": 4, "y": 2}
    assert by_zone(state, some) == {"x": 2, "y": 2}
    everywhere.refresh()
    assert everywhere.values[everywhere.last] == 0
    assert state.domain_table(ZONE, counter, ssd_only(state)) is some
    assert state.domain_table(ZONE, counter) is everywhere


@pytest.mark.parametrize("many", [1, FIRST_CAPACITY, FIRST_CAPACITY + 1, 5 * FIRST_CAPACITY])
def test_a_table_applies_any_number_of_missed_changes(many: int) -> None:
    state = ClusterState()
    add_node(state, "n0", "x", "ssd")
    add_node(state, "n1", "y")
    counter = state.matching_counter("a", is_a)
    table = state.domain_table(ZONE, counter, ssd_only(state))
    assert by_zone(state, table) == {}
    for number in range(many):
        place(state, f"p{number}", "n0")
        place(state, f"q{number}", "n1")
    assert by_zone(state, table) == {"x": many}


def test_a_table_recomputes_its_sums_if_changes_were_dropped_from_the_log() -> None:
    state = ClusterState()
    add_node(state, "n0", "x")
    counter = state.matching_counter("a", is_a)
    table = state.domain_table(ZONE, counter)
    place(state, "first", "n0")
    assert by_zone(state, table) == {"x": 1}
    for _ in range(MAX_CHANGES // 2 + 1):
        place(state, "p", "n0")
        state.remove_pod("default/p")
    place(state, "second", "n0")
    assert counter.log.start > 0
    assert by_zone(state, table) == {"x": 2}


def test_sums_follow_a_trial_and_its_undo() -> None:
    state = ClusterState()
    add_node(state, "n0", "x")
    table = state.domain_table(ZONE, state.matching_counter("a", is_a))
    place(state, "p", "n0")
    assert by_zone(state, table) == {"x": 1}
    with state.trial():
        state.remove_pod("default/p")
        place(state, "q", "n0")
        place(state, "r", "n0")
        assert by_zone(state, table) == {"x": 2}
    assert by_zone(state, table) == {"x": 1}


def test_counters_grow_with_the_node_table() -> None:
    state = ClusterState()
    add_node(state, "first", "x")
    counter = state.matching_counter("a", is_a)
    table = state.domain_table(ZONE, counter)
    place(state, "p", "first")
    assert by_zone(state, table) == {"x": 1}
    for number in range(300):
        add_node(state, f"n{number}", f"z{number}")
    place(state, "q", "n299")
    assert len(counter.values) == state.nodes.capacity
    assert by_zone(state, table) == {"x": 1, "z299": 1}
    state.check_invariants()


def test_an_eligibility_mask_is_recomputed_only_after_node_changes() -> None:
    made = []

    def make() -> Bools:
        made.append(1)
        return np.ones(1, dtype=np.bool_)

    eligibility = Eligibility("k", make)
    assert eligibility.mask(3) is eligibility.mask(3)
    assert len(made) == 1
    eligibility.mask(4)
    assert len(made) == 2


def test_check_invariants_detects_a_wrong_counter() -> None:
    state = ClusterState()
    add_node(state, "n0", "x")
    counter: Counter = state.matching_counter("a", is_a)
    place(state, "p", "n0")
    counter.add(0, 1)
    with pytest.raises(InvariantError, match="the matching counter 'a' is not what the pods on rows give"):
        state.check_invariants()


def act(draw: Callable[..., int], state: ClusterState, number: int) -> None:
    """Add or remove a pod, or add, change or remove a node."""
    kind = draw(st.integers(0, 9))
    pods, names = sorted(state.pods), sorted(state.nodes.row_of)
    if kind <= 4 and names:
        namespace = ("default", "other")[draw(st.integers(0, 1))]
        place(
            state, f"p{number}", names[draw(st.integers(0, len(names) - 1))], "ab"[draw(st.integers(0, 1))], namespace
        )
    elif kind <= 6 and pods:
        state.remove_pod(pods[draw(st.integers(0, len(pods) - 1))])
    elif kind == 7 and len(names) > 1:
        state.remove_node(names[draw(st.integers(0, len(names) - 1))])
    else:
        zone, disk = ("x", "y", "")[draw(st.integers(0, 2))], ("ssd", "")[draw(st.integers(0, 1))]
        add_node(state, NODES[draw(st.integers(0, 3))], zone, disk)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_domain_tables_equal_a_full_count(data: st.DataObject) -> None:
    state = ClusterState()
    add_node(state, "n0", "x", "ssd")
    add_node(state, "n1", "x")
    rules: list[tuple[str, Matches]] = [("a", is_a), ("live", is_live)]
    tables: list[tuple[Matches, DomainTable, Eligibility | None]] = []
    for number in range(data.draw(st.integers(5, 30))):
        act(data.draw, state, number)
        if number in (0, 4):
            # The first tables are created before most pods exist, the second ones after some pods exist.
            for name, matches in rules:
                for eligibility in (None, ssd_only(state)):
                    counter = state.matching_counter((name, number), matches)
                    tables.append((matches, state.domain_table(ZONE, counter, eligibility), eligibility))
        for matches, table, eligibility in tables:
            mask = None if eligibility is None else eligibility.mask(state.node_log.end)
            assert by_zone(state, table) == counted(state, matches, mask)
    state.check_invariants()
