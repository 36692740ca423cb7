"""OpenAPI documents: operations and types of built-in and custom resources, compared with a recorded kube-apiserver."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.apiserver.rest.messages import Request, Response
from tests.apiserver.client import Client
from tests.shared import shared_path

CROPS = "/openapi/v3/apis/farm.example.com/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "com.example.farm.v1.Crop"
EMPTY_REFERENCES = {"JSONSchemaProps", "IngressRule"}
"""Types with fields that upstream doesn't describe: references to types stand alone there, not in ``allOf``."""


def definition(schema: dict[str, Any], **names: object) -> dict[str, Any]:
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crops.farm.example.com"},
        "spec": {
            "group": "farm.example.com",
            "scope": "Namespaced",
            "names": {"plural": "crops", "kind": "Crop", **names},
            "versions": [version],
        },
    }


def spec_schema(**properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Crop is grown.",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }


def client_with(schema: dict[str, Any], **names: object) -> Client:
    client = Client()
    assert client.call("POST", DEFINITIONS, definition(schema, **names)).status == 201
    return client


def document(client: Client, path: str) -> Any:
    answer = client.get(path)
    assert answer.status == 200
    return answer.body


def spec_properties(client: Client, *, version: int) -> Any:
    if version == 3:
        schema = document(client, CROPS)["components"]["schemas"][NAME]
    else:
        schema = document(client, "/openapi/v2")["definitions"][NAME]
    return schema["properties"]["spec"]["properties"]


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "$ref" and isinstance(each, str):
                yield each
            else:
                yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def operations(paths: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in paths.values():
        yield from (each for each in item.values() if isinstance(each, dict))


# --- custom resources -------------------------------------------------------------------------------------------------


def test_the_type_of_a_custom_resource_has_its_schema_and_the_fields_of_every_object() -> None:
    schemas = document(client_with(spec_schema(area={"type": "integer"})), CROPS)["components"]["schemas"]
    crop = schemas[NAME]
    assert crop["description"] == "Crop is grown."
    assert list(crop["properties"]) == ["spec", "apiVersion", "kind", "metadata"]
    meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    assert crop["properties"]["metadata"] == {"allOf": [{"$ref": meta}]}
    assert crop["x-kubernetes-group-version-kind"] == [{"group": "farm.example.com", "kind": "Crop", "version": "v1"}]
    assert schemas[f"{NAME}List"]["properties"]["items"]["items"] == {"$ref": f"#/components/schemas/{NAME}"}


def test_the_type_of_a_list_has_the_list_kind_of_the_definition() -> None:
    found = document(client_with({"type": "object"}, listKind="Harvest"), CROPS)
    assert "com.example.farm.v1.Harvest" in found["components"]["schemas"]
    listed = found["paths"]["/apis/farm.example.com/v1/crops"]["get"]
    assert listed["operationId"] == "listFarmExampleComV1CropForAllNamespaces"
    content = listed["responses"]["200"]["content"]
    assert content["application/json"]["schema"]["$ref"].endswith("com.example.farm.v1.Harvest")


def test_documents_follow_a_changed_definition() -> None:
    client = client_with(spec_schema(area={"type": "integer"}))
    before = document(client, CROPS), document(client, "/openapi/v3"), document(client, "/openapi/v2")
    changed = client.get(f"{DEFINITIONS}/crops.farm.example.com").document
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = spec_schema(rows={"type": "integer"})  # type: ignore[index]
    assert client.call("PUT", f"{DEFINITIONS}/crops.farm.example.com", changed).status == 200
    assert list(spec_properties(client, version=3)) == ["rows"]
    assert list(spec_properties(client, version=2)) == ["rows"]
    after = document(client, CROPS), document(client, "/openapi/v3"), document(client, "/openapi/v2")
    assert all(new != old for new, old in zip(after, before, strict=True))


@pytest.mark.parametrize(
    ("schema", "third", "second"),
    [
        (
            {"type": "string", "default": "x", "enum": ["x"], "nullable": True},
            {"type": "string", "default": "x", "enum": ["x"], "nullable": True},
            {"enum": ["x"]},
        ),
        (
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"x-kubernetes-int-or-string": True},
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
            {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
            {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "default": "a"}},
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "default": "a"}},
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        ),
        (
            {"type": "string", "anyOf": [{"minLength": 2}], "example": "ab"},
            {"type": "string", "anyOf": [{"minLength": 2}], "example": "ab"},
            {"type": "string"},
        ),
    ],
)
def test_version_2_omits_what_it_cannot_express(
    schema: dict[str, Any], third: dict[str, Any], second: dict[str, Any]
) -> None:
    client = client_with(spec_schema(field=schema))
    assert spec_properties(client, version=3)["field"] == third
    assert spec_properties(client, version=2)["field"] == second


def test_an_embedded_resource_has_the_fields_of_every_object() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": {"type": "string"}}}
    client = client_with(spec_schema(part=embedded))
    for version in (3, 2):
        part = spec_properties(client, version=version)["part"]
        assert set(part["properties"]) == {"a", "apiVersion", "kind", "metadata"}
        assert part["required"] == ["kind", "apiVersion"]


def test_operations_of_a_custom_resource_take_json_and_yaml_and_no_strategic_patches() -> None:
    paths = document(client_with({"type": "object"}), CROPS)["paths"]
    one = paths["/apis/farm.example.com/v1/namespaces/{namespace}/crops/{name}"]
    assert list(one["put"]["requestBody"]["content"]) == ["application/json", "application/yaml"]
    assert "application/strategic-merge-patch+json" not in one["patch"]["requestBody"]["content"]
    assert [each["name"] for each in one["parameters"]] == ["name", "namespace", "pretty"]
    scale = paths["/apis/farm.example.com/v1/namespaces/{namespace}/crops/{name}/scale"]["get"]
    assert scale["operationId"] == "readFarmExampleComV1NamespacedCropScale"
    assert not any("/watch/" in path for path in paths)


def test_version_2_as_protobuf_contains_custom_resources() -> None:
    client = client_with(spec_schema(field={"type": "object", "additionalProperties": True}))
    old = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    answer = asyncio.run(client.api.handle(Request("GET", "/openapi/v2", {}, {"accept": old})))
    assert isinstance(answer, Response)
    assert answer.status == 200
    assert NAME.encode() in answer.body


# --- built-in resources -----------------------------------------------------------------------------------------------


def test_operation_ids_are_unique_and_references_have_targets() -> None:
    client = client_with(spec_schema(area={"type": "integer"}))
    found = document(client, "/openapi/v2")
    ids = [each["operationId"] for each in operations(found["paths"])]
    assert len(ids) == len(set(ids)) > 800
    targets = {f"#/definitions/{name}" for name in found["definitions"]}
    assert set(references(found)) <= targets
    for path in json.loads(document(client, "/openapi/v3"))["paths"]:
        found = document(client, f"/openapi/v3/{path}")
        targets = {f"#/components/schemas/{name}" for name in found["components"].get("schemas", ())}
        assert set(references(found)) <= targets, path


def test_parameters_that_all_operations_share_belong_to_the_path() -> None:
    paths = document(Client(), "/openapi/v3/api/v1")["paths"]
    pods = paths["/api/v1/pods"]
    assert "parameters" not in pods["get"]
    assert "labelSelector" in [each["name"] for each in pods["parameters"]]
    binding = paths["/api/v1/namespaces/{namespace}/pods/{name}/binding"]
    assert [each["name"] for each in binding["parameters"]][:2] == ["dryRun", "fieldManager"]


def test_connections_have_the_fields_of_their_options_as_parameters() -> None:
    paths = document(Client(), "/openapi/v3/api/v1")["paths"]
    proxy = paths["/api/v1/nodes/{name}/proxy/{path}"]
    assert proxy["options"]["operationId"] == "connectCoreV1OptionsNodeProxyWithPath"
    assert [(each["name"], each["in"]) for each in proxy["parameters"]] == [
        ("name", "path"), ("path", "path"), ("path", "query"),
    ]  # fmt: skip
    log = paths["/api/v1/namespaces/{namespace}/pods/{name}/log"]
    assert "tailLines" in [each["name"] for each in log["parameters"]]


def without_descriptions(value: Any) -> Any:
    """Return a document without descriptions; in version 2, parameters stand in the place of references to them."""
    if isinstance(value, dict):
        return {
            key: without_descriptions(each)
            for key, each in value.items()
            if key != "description" or not isinstance(each, str)
        }
    return [without_descriptions(each) for each in value] if isinstance(value, list) else value


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = without_descriptions(found)
    schemas = plain.get("components", {}).get("schemas") or plain.get("definitions", {})
    for name, schema in list(schemas.items()):
        kind = name.rpartition(".")[2]
        if kind in EMPTY_REFERENCES:
            del schemas[name]
        if kind in ("DeleteOptions", "WatchEvent"):  # version 2 lists groups that are not served
            del schema["x-kubernetes-group-version-kind"]
        if name == "io.k8s.apimachinery.pkg.version.Info":
            schema["required"].sort()
    return plain


def recorded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def test_documents_of_version_3_equal_those_of_a_kube_apiserver() -> None:
    client = Client()
    names = [each.name.removesuffix(".json.gz") for each in (shared_path("reference") / "openapi-v3").glob("*.json.gz")]
    assert len(names) > 10
    for name in sorted(set(names) - {"index"}):
        expected = recorded(shared_path("reference") / "openapi-v3" / f"{name}.json.gz")
        found = document(client, f"/openapi/v3/{name.replace('__', '/')}")
        assert comparable(found) == comparable(expected), name


def test_the_document_of_version_2_equals_that_of_a_kube_apiserver() -> None:
    expected = comparable(recorded(shared_path("reference") / "openapi-v2.json.gz"))
    parameters = expected.pop("parameters")
    found = comparable(document(Client(), "/openapi/v2"))
    for holder in [*expected["paths"].values(), *operations(expected["paths"])]:
        if "parameters" in holder:
            holder["parameters"] = [
                parameters[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in holder["parameters"]
            ]
    for paths in (expected["paths"], found["paths"]):
        for each in operations(paths):
            each["produces"].sort()
            each["consumes"] = sorted(each.get("consumes", each["produces"]))
    assert found["definitions"] == expected["definitions"]
    assert {path: item for path, item in found["paths"].items() if "metrics.k8s.io" not in path} == expected["paths"]
