"""Nominations: which pod is nominated to which node, in which order, and what removes a nomination."""

from __future__ import annotations

import pytest

from bayplan.engine.nominated_pods import Nominator
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import pod


def nominations(nominator: Nominator) -> dict[str, list[str]]:
    return {node: [key.removeprefix("default/") for key in nominator.on_node(node).values()] for node in nominator}


PLAIN, IN_STATUS, BOUND = pod("a"), pod("a", nominated="n1"), pod("a", node="n9")
ADDED: list[tuple[str, Pod, str | None, Pod | None, dict[str, list[str]]]] = [
    ("the scheduler's choice", PLAIN, "n2", PLAIN, {"n2": ["a"]}),
    ("the scheduler's choice beats the status", IN_STATUS, "n2", PLAIN, {"n2": ["a"]}),
    ("the status, where nothing is said", IN_STATUS, None, PLAIN, {"n1": ["a"]}),
    ("no plugin nominates a node", PLAIN, None, PLAIN, {}),
    ("the pod is gone", PLAIN, "n2", None, {}),
    ("the pod has a node", PLAIN, "n2", BOUND, {}),
    ("the scheduler takes the nomination back: filed under no node, as upstream", PLAIN, "", PLAIN, {"": ["a"]}),
]


@pytest.mark.parametrize(
    ("added", "nominated_node_name", "known", "want"), [row[1:] for row in ADDED], ids=[row[0] for row in ADDED]
)
def test_add_nominates_a_pod_to_the_expected_node(
    added: Pod, nominated_node_name: str | None, known: Pod | None, want: dict[str, list[str]]
) -> None:
    nominator = Nominator({"default/a": known}.get)
    nominator.add(added, nominated_node_name)
    assert nominations(nominator) == want
    assert len(nominator.node_by_uid) == len(want)


UPDATED: list[tuple[str, Pod, Pod, dict[str, list[str]]]] = [
    ("nothing is said: the nomination stays, at the end of the list", PLAIN, PLAIN, {"n1": ["b", "a"]}),
    ("the status now says another node", PLAIN, pod("a", nominated="n2"), {"n1": ["b"], "n2": ["a"]}),
    ("the status now says the same node", PLAIN, IN_STATUS, {"n1": ["b", "a"]}),
    ("the status no longer says a node", IN_STATUS, PLAIN, {"n1": ["b"]}),
]


@pytest.mark.parametrize(("old", "new", "want"), [row[1:] for row in UPDATED], ids=[row[0] for row in UPDATED])
def test_update_refreshes_a_nomination(old: Pod, new: Pod, want: dict[str, list[str]]) -> None:
    nominator = Nominator({"default/a": PLAIN, "default/b": pod("b")}.get)
    nominator.add(old, "n1")
    nominator.add(pod("b"), "n1")
    nominator.update(old, new)
    assert nominations(nominator) == want


def test_remove_deletes_a_nomination_completely() -> None:
    nominator = Nominator({"default/a": PLAIN}.get)
    nominator.add(PLAIN, "n1")
    nominator.remove("uid-a")
    nominator.remove("uid-a")
    assert (nominations(nominator), nominator.node_by_uid, nominator.on_node("n1")) == ({}, {}, {})


def test_pods_without_uid_are_distinguished() -> None:
    first, second = pod("a", uid=""), pod("b", uid="")
    nominator = Nominator({"default/a": first, "default/b": second}.get)
    nominator.add(first, "n1")
    nominator.add(second, "n1")
    assert nominations(nominator) == {"n1": ["a", "b"]}
