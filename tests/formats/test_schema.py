"""The table of API types: its contents, unknown fields, and a comparison with its script's output for the reference."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from bayplan.base.version import KUBERNETES_VERSION
from bayplan.formats.schema import FieldFacts, KindFacts, find_kind, known_fields, schema, unknown_fields
from tests.shared import shared_path

CORE = "io.k8s.api.core.v1"


def test_the_schema_matches_the_pinned_kubernetes_release() -> None:
    assert schema().release == KUBERNETES_VERSION


@pytest.mark.parametrize(
    ("api_version", "kind", "want"),
    [
        pytest.param("v1", "Pod", KindFacts(type=f"{CORE}.Pod", resource="pods", namespaced=True), id="core"),
        pytest.param("v1", "Node", KindFacts(type=f"{CORE}.Node", resource="nodes"), id="without namespace"),
        pytest.param("v1", "PodList", KindFacts(type=f"{CORE}.PodList"), id="a list is not a resource"),
        pytest.param("apps/v1", "Pod", None, id="another group"),
        pytest.param("v1", "DeleteOptions", None, id="a type of many kinds"),
    ],
)
def test_find_kind_returns_type_resource_and_scope(api_version: str, kind: str, want: KindFacts | None) -> None:
    assert find_kind(api_version, kind) == want


@pytest.mark.parametrize(
    ("type_name", "field", "want"),
    [
        pytest.param(
            f"{CORE}.PodSpec",
            "containers",
            FieldFacts(
                type=f"{CORE}.Container",
                containers=("list",),
                list_type="map",
                list_map_keys=("name",),
                merge_key="name",
                strategy="merge",
                required=True,
            ),
            id="a list merged by name",
        ),
        pytest.param(
            f"{CORE}.PodSpec",
            "nodeSelector",
            FieldFacts(type="string", containers=("map",), map_type="atomic"),
            id="a map taken as one value",
        ),
        pytest.param(
            f"{CORE}.ServicePort",
            "protocol",
            FieldFacts(type="string", enum=("SCTP", "TCP", "UDP"), default="TCP"),
            id="an enum with a default",
        ),
        pytest.param(
            "io.k8s.api.authentication.v1.UserInfo",
            "extra",
            FieldFacts(type="string", containers=("map", "list")),
            id="a map of lists",
        ),
        pytest.param(
            f"{CORE}.ResourceRequirements",
            "requests",
            FieldFacts(type="io.k8s.apimachinery.pkg.api.resource.Quantity", containers=("map",)),
            id="a map of another type",
        ),
        pytest.param(
            f"{CORE}.PodSpec", "priority", FieldFacts(type="integer", format="int32"), id="a number with a format"
        ),
    ],
)
def test_fields_have_type_merge_strategy_and_default(type_name: str, field: str, want: FieldFacts) -> None:
    found = schema().types[type_name].fields[field]
    shown = msgspec.structs.replace(found, default=want.default) if want.default is msgspec.UNSET else found
    assert shown == want


def test_every_referenced_type_is_defined() -> None:
    primitive = {"string", "integer", "number", "boolean", "object", "any"}
    types = schema().types
    named = {facts.type for entry in types.values() for facts in entry.fields.values()}
    named |= {facts.type for facts in schema().kinds.values()}
    assert sorted(named - primitive - set(types)) == []


POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param({**POD, "metadata": {"name": "x"}, "spec": {"containers": []}}, [], id="all known"),
        pytest.param({**POD, "specs": {"a": 1}}, ["$.specs"], id="at the top, and nothing below it"),
        pytest.param(
            {**POD, "spec": {"containers": [{"name": "c"}, {"nam": "d", "image": "x", "port": 1}]}},
            ["$.spec.containers[1].nam", "$.spec.containers[1].port"],
            id="in an item of a list",
        ),
        pytest.param({**POD, "metadata": {"labels": {"any": "thing"}}}, [], id="the keys of maps are free"),
        pytest.param({**POD, "metadata": {"managedFields": [{"fieldsV1": {"f:x": {}}}]}}, [], id="free objects"),
        pytest.param({**POD, "spec": [1], "metadata": None}, [], id="values that are not objects are skipped"),
        pytest.param(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "spec": {"volumeClaimTemplates": [{"spec": {"resources": {"request": {}}}}]},
            },
            ["$.spec.volumeClaimTemplates[0].spec.resources.request"],
            id="deep inside",
        ),
        pytest.param({"apiVersion": "x/v1", "kind": "Y", "z": 1}, [], id="a kind without a table"),
        pytest.param({"apiVersion": 1, "kind": None}, [], id="no kind at all"),
    ],
)
def test_unknown_fields_are_found_with_their_path(document: dict[str, object], want: list[str]) -> None:
    assert unknown_fields(document) == want


def test_known_fields_lists_the_siblings_of_an_unknown_field() -> None:
    document = {**POD, "spec": {"containers": [{"nam": "x"}]}}
    beside = known_fields(document, "$.spec.containers[0].nam")
    assert "name" in beside
    assert "nodeName" not in beside
    assert known_fields(document, "$.nowhere.else") == []


def _script() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "scripts" / "make_schema.py"
    spec = importlib.util.spec_from_file_location("make_schema", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_schema"] = module
    spec.loader.exec_module(module)
    return module


def test_the_schema_matches_the_output_of_make_schema() -> None:
    folder = shared_path("reference")
    table = _script().make_table(folder)
    assert msgspec.convert(table, type(schema())) == schema()


def test_make_schema_omits_descriptions() -> None:
    facts = _script().field_facts(
        {
            "description": "Words that stay behind.",
            "type": "array",
            "items": {"$ref": "#/definitions/io.k8s.X"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a", "b"],
            "x-kubernetes-patch-merge-key": "a",
            "x-kubernetes-patch-strategy": "merge,retainKeys",
        },
        required=True,
    )
    assert facts == {
        "type": "io.k8s.X",
        "containers": ["list"],
        "list_type": "map",
        "list_map_keys": ["a", "b"],
        "merge_key": "a",
        "strategy": "merge,retainKeys",
        "required": True,
    }
