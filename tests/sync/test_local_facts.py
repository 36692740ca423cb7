"""The follower reads only parts of the target's objects, and decides as if it read them completely."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.base.plain_data import Document
from bayplan.sync.local_facts import read_local_facts
from bayplan.sync.merging import is_finished, is_gated
from tests.sync.follower_fixture import node, pod

NAMES: Document = {"name": "x", "namespace": "", "uid": "u", "annotations": {}}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(pod("p", node_name="n"), (False, False), id="a pod that runs"),
        pytest.param(pod("p", gates=("g",)), (True, False), id="a pod that is gated"),
        pytest.param(pod("p", phase="Failed"), (False, True), id="a pod that has ended"),
        pytest.param({"metadata": {"name": "p"}, "spec": None, "status": None}, (False, False), id="nulls"),
        pytest.param({"metadata": {"name": "p"}, "spec": 7, "status": {"phase": 7}}, (False, False), id="odd shapes"),
    ],
)
def test_gates_and_finished_phases_are_detected(document: Document, want: tuple[bool, bool]) -> None:
    found = read_local_facts(msgspec.json.encode(document))
    assert (is_gated(found), is_finished(found)) == want


def test_only_name_uid_and_annotations_are_read() -> None:
    document = node("x")
    metadata = {**NAMES, "annotations": {"bayplan.io/source-uid": "s"}, "labels": {"a": "b"}}
    found = read_local_facts(msgspec.json.encode({**document, "metadata": metadata}))
    assert found == {"metadata": {**NAMES, "annotations": {"bayplan.io/source-uid": "s"}}}
