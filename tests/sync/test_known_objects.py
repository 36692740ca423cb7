"""Objects of the source that have no uid."""

from __future__ import annotations

import pytest

from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.known_objects import placeholder_uid, source_object


@pytest.mark.parametrize(
    ("ref", "want"),
    [
        pytest.param(ObjectRef("pods", "default", "p"), "pods.default.p", id="a namespaced object"),
        pytest.param(ObjectRef("nodes", "", "n"), "nodes.n", id="a cluster-scoped object"),
    ],
)
def test_an_object_without_a_uid_gets_one_from_its_reference(ref: ObjectRef, want: str) -> None:
    assert placeholder_uid(ref) == want
    assert source_object(ref, {"metadata": {"name": ref.name}}, initial=True).uid == want
    assert source_object(ref, {"metadata": {"name": ref.name, "uid": "u"}}, initial=True).uid == "u"
