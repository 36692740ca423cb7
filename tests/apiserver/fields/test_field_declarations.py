"""Problems of applied configurations, in the words of structured merge."""

from __future__ import annotations

import pytest

from bayplan.apiserver.fields.field_declarations import configuration_problem
from bayplan.apiserver.fields.field_type import FieldType, Merge, field_type

POD = "io.k8s.api.core.v1.Pod"
OMITS = "associative list with keys has an element that omits all key fields"


def pod(**spec: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("config", "want"),
    [
        pytest.param(pod(containers=[{"name": "c", "image": "i"}]), "", id="a matching type"),
        pytest.param({"nope": 1}, ".nope: field not declared in schema", id="a field that the type lacks"),
        pytest.param(
            pod(hostname=1), ".spec.hostname: expected string, got &value.valueUnstructured{Value:1}", id="a number"
        ),
        pytest.param(pod(priority="1"), ".spec.priority: expected numeric (int or float), got string", id="a text"),
        pytest.param(
            pod(nodeSelector={"a": [1, None, {"b": True}]}),
            ".spec.nodeSelector.a: expected string, got &value.valueUnstructured{Value:"
            '[]interface {}{1, interface {}(nil), map[string]interface {}{"b":true}}}',
            id="a list instead of a string",
        ),
        pytest.param(
            pod(overhead={"cpu": {"a": 1}}),
            ".spec.overhead.cpu: expected any scalar, got &{map[a:1]}",
            id="no quantity",
        ),
        pytest.param(pod(containers={}), ".spec.containers: expected list, got &{map[]}", id="a map"),
        pytest.param(pod(securityContext=1.0), ".spec.securityContext: expected map, got &{1}", id="a whole float"),
        pytest.param(pod(securityContext=[]), ".spec.securityContext: expected map, got &{[]}", id="a list"),
        pytest.param(
            pod(containers=[{"name": "c"}, {"name": "d"}, {"name": "c"}]),
            '.spec.containers: duplicate entries for key [name="c"]',
            id="an item with the key of another",
        ),
        pytest.param(
            pod(containers=[{"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}]),
            '.spec.containers[name="c"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]',
            id="a key by its default",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a.b/c", "a.b/c"]}},
            '.metadata.finalizers: duplicate entries for key [="a.b/c"]',
            id="a duplicate value in a set",
        ),
        pytest.param(
            pod(containers=[{"image": "i"}, {"name": ""}]),
            '.spec.containers: duplicate entries for key [name=""]',
            id="an item without its key, which is empty by default",
        ),
        pytest.param(
            pod(containers=[None]),
            ".spec.containers: element 0: associative list with keys may not have a null element",
            id="an item that is null",
        ),
        pytest.param(
            pod(containers=["c"]),
            ".spec.containers: element 0: associative list with keys may not have non-map elements",
            id="an item that is not an object",
        ),
        pytest.param(
            {"metadata": {"finalizers": [{}]}},
            ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
            id="an object in a set",
        ),
        pytest.param(
            pod(tolerations=[{"nope": 1}], hostNetwork="x"),
            "errors:\n  .spec.hostNetwork: expected boolean, got &{x}\n  .spec.tolerations[0].nope: field not declared in schema",
            id="several, in the order of their names",
        ),
        pytest.param(
            pod(containers=[{"name": {"a": ["ü", 1]}, "image": 5}]),
            'errors:\n  .spec.containers[name=a=["ü",1]].image: expected string, got &value.valueUnstructured{Value:5}'
            '\n  .spec.containers[name=a=["ü",1]].name: expected string, got'
            ' &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{"ü", 1}}}',
            id="a key that is an object",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": [1]}},
            ".metadata.creationTimestamp: expected any scalar, got &{[1]}",
            id="a time that is a list",
        ),
        pytest.param(
            pod(imagePullSecrets=[{"name": "s", "nope": 1}]),
            '.spec.imagePullSecrets[name="s"].nope: field not declared in schema',
            id="a field that an atomic struct lacks",
        ),
        pytest.param(
            pod(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"nope": 1}]}
                    }
                }
            ),
            ".spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].nope:"
            " field not declared in schema",
            id="a field that a struct inside an atomic struct lacks",
        ),
        pytest.param(
            pod(zzz=1, hostname=1, nope=1),
            "errors:\n  .spec.hostname: expected string, got &value.valueUnstructured{Value:1}"
            "\n  .spec.nope: field not declared in schema",
            id="nothing after a field that the type lacks",
        ),
    ],
)
def test_apply_configurations_are_validated_with_the_messages_of_structured_merge(
    config: dict[str, object], want: str
) -> None:
    assert configuration_problem(POD, field_type(POD), config) == want


def test_keyed_lists_of_custom_resources_reject_missing_and_duplicate_keys() -> None:
    items = FieldType(Merge.KEYED_LIST)
    items.keys, items.element = ("id",), FieldType(Merge.STRUCT)
    items.element.fields = {"id": FieldType(Merge.LEAF)}
    kind = FieldType(Merge.STRUCT)
    kind.fields = {"items": items}
    assert configuration_problem("", kind, {"items": [{"id": 1}, {"id": 2}]}) == ""
    assert (
        configuration_problem("", kind, {"items": [{"id": 1}, {"id": 1}]}) == ".items: duplicate entries for key [id=1]"
    )
    want = f'.items: element 0: {OMITS} ["id"] (and doesn\'t have default values for any key fields)'
    assert configuration_problem("", kind, {"items": [{}]}) == want


def test_a_key_that_go_always_writes_is_empty_by_default() -> None:
    hook: dict[str, object] = {"name": "a.b.c", "matchConditions": [{"expression": "true"}, {"expression": "false"}]}
    kind = "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration"

    problem = configuration_problem(kind, field_type(kind), {"webhooks": [hook]})

    assert problem == '.webhooks[name="a.b.c"].matchConditions: duplicate entries for key [name=""]'
