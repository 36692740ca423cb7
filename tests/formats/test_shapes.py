"""Objects without a kind are recognized if, and only if, their fields are unambiguous."""

import pytest

from bayplan.formats.shapes import infer_kind

META = {"metadata": {"name": "x"}}
CAPACITY = {"cpu": "4"}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({**META, "spec": {"containers": [{"name": "c"}]}}, ("v1", "Pod"), id="containers with names"),
        pytest.param({**META, "spec": {"containers": [{}]}}, None, id="containers without names"),
        pytest.param({**META, "spec": {"containers": []}}, None, id="no containers"),
        pytest.param({"spec": {"containers": [{"name": "c"}]}}, None, id="a template has no metadata of its own"),
        pytest.param(
            {**META, "status": {"capacity": CAPACITY, "nodeInfo": {}}}, ("v1", "Node"), id="capacity and node info"
        ),
        pytest.param({**META, "status": {"capacity": CAPACITY}}, None, id="capacity alone may be a claim's"),
        pytest.param(
            {**META, "spec": {"capacity": {}, "accessModes": [], "claimRef": {}}},
            ("v1", "PersistentVolume"),
            id="a volume's fields",
        ),
        pytest.param({**META, "spec": {"accessModes": [], "volumeMode": "Block"}}, None, id="a claim's fields"),
        pytest.param({**META, "provisioner": "x"}, ("storage.k8s.io/v1", "StorageClass"), id="a provisioner"),
        pytest.param({**META, "provisioner": "x", "spec": {}}, None, id="a provisioner and a spec"),
        pytest.param({**META, "data": {"a": "b"}}, None, id="anything else"),
    ],
)
def test_only_unambiguous_objects_without_kind_are_recognised(
    value: dict[str, object], want: tuple[str, str] | None
) -> None:
    assert infer_kind(value) == want
