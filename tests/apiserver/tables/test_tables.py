"""Tables of lists: the order of rows."""

from __future__ import annotations

from tests.apiserver.client import Client

SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_flow_schemas_are_listed_by_precedence_then_by_name() -> None:
    client = Client()
    for name, precedence in (("a", 30), ("c", 20), ("b", 20)):
        spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": precedence}
        assert client.post(SCHEMAS, {"metadata": {"name": name, "labels": {"own": "x"}}, "spec": spec}).status == 201
    rows = client.get(f"{SCHEMAS}?labelSelector=own", accept=TABLE).at("rows")
    assert isinstance(rows, list)
    assert [each["cells"][0] for each in rows] == ["b", "c", "a"]


def test_a_port_without_number_and_name_of_an_endpoint_slice_is_unset() -> None:
    client = Client()
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    document = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [], "ports": [{"name": ""}]}
    assert client.post(slices, document).status == 201
    assert client.get(f"{slices}/s", accept=TABLE).at("rows.0.cells.2") == "<unset>"
