"""Filtering, sorting and paging of pods in columns, compared with a naive list."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.analysis.reasons import reasons_of
from bayplan.engine.decision import Outcome, Record
from bayplan.http_api.pod_query import SORTS, PodFilter, find_pods
from bayplan.http_api.pod_table import NEVER, PodColumns, PodStatus, PodTable
from bayplan.http_api.query import Deadline
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.objects.requests import DEFAULT_GATES

MESSAGES = (
    "",
    "0/5 nodes are available: 5 Insufficient cpu.",
    "0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient memory.",
    "0/5 nodes are available: 5 node(s) were unschedulable.",
)


class Row(NamedTuple):
    """A pod as the naive list has it."""

    namespace: str
    name: str
    node: str
    cpu: int
    priority: int
    message: str
    created: int
    finished: bool

    @property
    def status(self) -> str:
        if self.finished:
            return "finished"
        return "placed" if self.node else "waiting"

    def pod(self, uid: str) -> Pod:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": self.message}
        status: dict[str, object] = {"phase": "Succeeded" if self.finished else "Pending"}
        if self.message and not self.node:
            status["conditions"] = [condition]
        requests = {"cpu": f"{self.cpu}m"}
        found = decode(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": self.name,
                    "namespace": self.namespace,
                    "uid": uid,
                    "creationTimestamp": f"2026-01-01T00:00:{self.created:02}Z",
                },
                "spec": {
                    "nodeName": self.node,
                    "priority": self.priority,
                    "containers": [{"name": "c", "resources": {"requests": requests}}],
                },
                "status": status,
            }
        )
        assert isinstance(found, Pod)
        return found


rows = st.lists(
    st.builds(
        Row,
        st.sampled_from(("a", "b", "team-x")),
        st.text("abc-", min_size=1, max_size=4),
        st.sampled_from(("", "n1", "n2")),
        st.integers(0, 3).map(lambda cpu: cpu * 500),
        st.integers(-1, 2),
        st.sampled_from(MESSAGES),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=30,
    unique_by=lambda row: (row.namespace, row.name),
)
filters = st.builds(
    PodFilter,
    words=st.lists(st.text("abC-/", max_size=2), max_size=2),
    status=st.sampled_from(("", "waiting", "placed", "finished", "gated")),
    reason=st.sampled_from(("", "Insufficient cpu", "node(s) were unschedulable", "x")),
    namespace=st.sampled_from(("", "a", "zz")),
    node=st.sampled_from(("", "n1", "n9")),
    priority=st.sampled_from((None, 0, 2)),
)


def _naive(row: Row, wanted: PodFilter) -> bool:
    key = f"{row.namespace}/{row.name}"
    told = {reason.text for reason in reasons_of(row.message)} if row.status == "waiting" else set()
    return (
        all(word.lower() in key for word in wanted.words)
        and wanted.status in ("", row.status)
        and (not wanted.reason or wanted.reason in told)
        and wanted.namespace in ("", row.namespace)
        and wanted.node in ("", row.node)
        and wanted.priority in (None, row.priority)
    )


def _sort_key(row: Row, sort: str) -> object:
    values: dict[str, object] = {
        "name": (row.namespace, row.name),
        "namespace": row.namespace,
        "status": PodStatus[row.status.upper()],
        "node": row.node,
        "cpu": row.cpu,
        "memory": 0,
        "priority": row.priority,
        "attempts": 0,
        "age": -row.created,
        "created_at": row.created,
    }
    return values[sort]


@settings(max_examples=120, deadline=None)
@given(
    rows,
    rows,
    filters,
    st.sampled_from(SORTS),
    st.booleans(),
    st.integers(0, 12),
    st.integers(1, 12),
)
def test_filtered_pages_and_facets_match_a_naive_implementation(
    first: list[Row], later: list[Row], wanted: PodFilter, sort: str, descending: bool, offset: int, limit: int
) -> None:
    table = PodTable(DEFAULT_GATES)
    for number, row in enumerate(first):
        table.put(row.pod(f"first-{number}"), "", 1)
    table.freeze().by_name()
    # New pods replace the removed ones: rows are reused, and names are sorted again.
    for row in first[::2]:
        table.remove(f"{row.namespace}/{row.name}", 2)
    kept = {(row.namespace, row.name): row for row in first[1::2]}
    for number, row in enumerate(later):
        table.put(row.pod(f"later-{number}"), "", 3)
        kept[row.namespace, row.name] = row

    found = sorted((row for row in kept.values() if _naive(row, wanted)), key=lambda row: (row.namespace, row.name))
    if sort == "name":
        found = found[::-1] if descending else found
    else:
        # Pods with equal keys are sorted by name, also if the order is descending.
        found.sort(key=lambda row: _sort_key(row, sort), reverse=descending)  # type: ignore[arg-type, return-value]
    pods = table.freeze()
    page = find_pods(
        pods, wanted, sort=(sort, descending), offset=offset, limit=limit, facets=True, deadline=Deadline(60)
    )
    want = [f"{row.namespace}/{row.name}" for row in found]
    assert [pods.keys[row] for row in page.rows] == want[offset : offset + limit]
    assert (page.total, page.is_exact) == (len(want), True)
    assert page.facets is not None
    assert dict(page.facets["status"]) == Counter(row.status for row in found)
    assert dict(page.facets["namespace"]) == Counter(row.namespace for row in found)
    assert dict(page.facets["node"]) == Counter(row.node for row in found if row.node)
    reasons = Counter(each.text for row in found if row.status == "waiting" for each in reasons_of(row.message))
    assert dict(page.facets["reason"]) == reasons
    assert pods.counts() == {
        status.text: sum(row.status == status.text for row in kept.values()) for status in PodStatus
    }


def test_columns_filled_in_slices_equal_those_filled_at_once() -> None:
    rows = [
        Row(
            "ab"[number % 2],
            f"p{number}",
            "n" * (number % 2),
            number % 3,
            number,
            MESSAGES[number % 3],
            number,
            number == 7,
        )
        for number in range(9)
    ]
    sliced, at_once = PodTable(DEFAULT_GATES), PodTable(DEFAULT_GATES)
    for table in (sliced, at_once):
        for number, row in enumerate(rows):
            table.put(row.pod(str(number)), "", 1)
        table.remove("a/p4", 2)
    assert sliced.changed == 8
    sliced.fill(3)
    # A new pod takes the row of the removed one, and a decision about another pod fails.
    for table in (sliced, at_once):
        table.put(Row("c", "late", "m", 5, 1, "", 3, finished=False).pod("late"), "", 3)
        table.take_record(Record(2, "a/p2", 1, Outcome.UNSCHEDULABLE, "", message=MESSAGES[3]))
    sliced.fill(3)
    assert sliced.changed == 4  # Five were left, and two have changed since.
    first, second = sliced.freeze(), at_once.freeze()
    assert first.keys == second.keys
    tables = {
        "node": "nodes",
        "namespace": "namespaces",
        "message": "messages",
        "scheduler": "schedulers",
        "shape": "shapes",
    }

    def column(pods: PodColumns, name: str) -> list[object]:
        values = getattr(pods, name).tolist()
        return [getattr(pods, tables[name])[code] for code in values] if name in tables else values

    for name in PodColumns.__dataclass_fields__:
        if isinstance(getattr(first, name), np.ndarray):
            assert column(first, name) == column(second, name), name
    assert [first.messages[first.message[first.rows[key]]] for key in ("a/p2", "c/late")] == [MESSAGES[3], ""]
    # An update after that is visible in the next copy only.
    at_once.put(replace(rows[0].pod("0"), spec=rows[1].pod("0").spec), "", 4)
    third = at_once.freeze()
    assert [each.nodes[each.node[each.rows["a/p0"]]] for each in (second, third)] == ["", "n"]


@given(st.integers(1, 40), st.integers(1, 13))
def test_concatenated_pages_contain_each_pod_once(count: int, limit: int) -> None:
    table = PodTable(DEFAULT_GATES)
    for number in range(count):
        table.put(Row("a", f"p{number}", "", 0, number % 3, "", 0, False).pod(str(number)), "", 1)
    pods, seen = table.freeze(), list[int]()
    for offset in range(0, count, limit):
        found = find_pods(
            pods,
            PodFilter(),
            sort=("priority", True),
            offset=offset,
            limit=limit,
            facets=False,
            deadline=Deadline(60),
        )
        seen += found.rows
    assert sorted(seen) == sorted(pods.rows.values())


def test_a_search_that_times_out_returns_a_lower_bound() -> None:
    table = PodTable(DEFAULT_GATES)
    for number in range(12_000):
        table.put(Row("a", f"p{number}", "", 0, 0, "", 0, False).pod(str(number)), "", 1)
    found = find_pods(
        table.freeze(),
        PodFilter(words=["p"]),
        sort=("name", False),
        offset=0,
        limit=5,
        facets=False,
        deadline=Deadline(0),
    )
    assert not found.is_exact
    assert 0 < found.total < 12_000
    assert len(found.rows) == 5


def test_the_workload_filter_matches_kind_name_and_namespace() -> None:
    table = PodTable(DEFAULT_GATES)
    made = ("Deployment shop/web", "Deployment shop/website", "Job shop/web", "", "Deployment lab/web", "Node n1")
    for number, workload in enumerate(made):
        namespace = "lab" if "lab" in workload else "shop"
        row = Row(namespace, f"p{number}", "", 1, 0, "", number, finished=False)
        table.put(row.pod(str(number)), workload, 0)
    pods = table.freeze()
    cases: tuple[tuple[str, str, list[str]], ...] = (
        ("Deployment/web", "shop", ["shop/p0"]),
        ("Deployment/web", "", ["lab/p4", "shop/p0"]),
        ("Deployment/shop/web", "", ["shop/p0"]),
        ("Deployment/shop/web", "lab", []),
        ("Deployment/op/web", "", []),
        ("Deployment", "", []),
        ("Node/n1", "", ["shop/p5"]),
    )
    for workload, namespace, want in cases:
        wanted = PodFilter(workload=workload, namespace=namespace)
        found = find_pods(pods, wanted, sort=("name", False), offset=0, limit=9, facets=False, deadline=Deadline(9))
        assert [pods.keys[row] for row in found.rows] == want


def test_the_workload_filter_distinguishes_kinds() -> None:
    table = PodTable(DEFAULT_GATES)
    for number in range(6):
        workload = ("Deployment a/web", "Job a/web", "")[number % 3]
        table.put(Row("a", f"p{number}", "", 0, 0, "", 0, False).pod(str(number)), workload, 1)
    pods = table.freeze()
    found = find_pods(
        pods,
        PodFilter(workload="Job/web"),
        sort=("name", False),
        offset=0,
        limit=9,
        facets=False,
        deadline=Deadline(60),
    )
    assert [pods.keys[row] for row in found.rows] == ["a/p1", "a/p4"]


def test_decisions_about_a_deleted_pod_do_not_affect_a_later_pod_of_the_same_name() -> None:
    table = PodTable(DEFAULT_GATES)
    row = Row("a", "p", "", 1, 0, "", 0, finished=False)
    table.put(row.pod("1"), "", 10)
    table.remove("a/p", 20)
    table.put(row.pod("2"), "", 30)
    table.take_record(Record(15, "a/p", 7, Outcome.UNSCHEDULABLE, "", message=MESSAGES[1]))
    life = table.life("a/p")
    assert life is not None
    assert (life.attempts, life.message, life.last_failure_ns) == (0, "", None)
    table.take_record(Record(30, "a/p", 1, Outcome.UNSCHEDULABLE, "", message=MESSAGES[3]))
    assert (life.attempts, life.message, life.last_failure_ns) == (1, MESSAGES[3], 30)


def test_a_pod_whose_columns_cannot_be_filled_leaves_no_row_half_filled() -> None:
    table = PodTable(DEFAULT_GATES)
    good, bad = (Row("a", name, "", 1, 5, "", 0, finished=False).pod(name) for name in ("good", "bad"))
    table.put(good, "", 1)
    table.put(replace(bad, spec=replace(bad.spec, priority=2**70)), "", 1)
    for _ in range(2):
        with pytest.raises(OverflowError):
            table.freeze()
    table.put(bad, "", 2)
    pods = table.freeze()
    assert (pods.priority.tolist(), pods.bound_ns.tolist(), pods.ended_ns.tolist()) == (
        [5, 5],
        [NEVER] * 2,
        [NEVER] * 2,
    )


def test_pods_without_a_node_are_not_counted_by_node() -> None:
    table = PodTable(DEFAULT_GATES)
    for number, node in enumerate(("n1", "", "n1", "n2")):
        table.put(Row("shop", f"p{number}", node, 1, 0, "", number, finished=False).pod(str(number)), "", 0)
    found = find_pods(
        table.freeze(), PodFilter(), sort=("name", False), offset=0, limit=9, facets=True, deadline=Deadline(9)
    )
    assert found.facets is not None
    assert found.facets["node"] == [("n1", 2), ("n2", 1)]
