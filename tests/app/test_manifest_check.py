"""`bayplan check`: the messages that a cluster would return for manifests, and which manifests apply to others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bayplan.app.manifest_check import check_manifests
from bayplan.cli.main import main

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "labelled"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "'team' in object.metadata.?labels.orValue({})", "message": "needs a team"}],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "labelled"},
    "spec": {"policyName": "labelled", "validationActions": ["Deny"]},
}


def config_map(name: str = "c", **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def widget(**spec: object) -> dict[str, object]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param([config_map()], [""], id="a valid object"),
        pytest.param([config_map(), config_map("d")], ["", ""], id="two of them"),
        pytest.param([config_map(), config_map()], ["", "the same object as"], id="one object twice"),
        pytest.param([config_map() | {"dat": {}}], ['unknown field "dat"'], id="a missing field"),
        pytest.param(
            [config_map(managedFields=[{"manager": "a", "operation": "Update", "fieldsV1": {"f:metadata": 1}}])],
            [""],
            id="managed fields that are invalid are ignored",
        ),
        pytest.param([config_map("A")], ["metadata.name: Invalid value"], id="an invalid name"),
        pytest.param(
            [config_map(namespace="shop")], ['namespaces "shop" not found'], id="a namespace that does not exist"
        ),
        pytest.param([config_map(namespace="shop"), NAMESPACE], ["", ""], id="a namespace that is defined later"),
        pytest.param([widget(size=1)], ['no matches for kind "Widget"'], id="a kind that is not defined"),
        pytest.param([widget(size=1), DEFINITION], ["", ""], id="a kind that is defined later"),
        pytest.param([DEFINITION, widget(size="x")], ["", "must be of type integer"], id="against its schema"),
        pytest.param([config_map(), BINDING, POLICY], ["needs a team", "", ""], id="against a policy"),
        pytest.param(
            [config_map(labels={"team": "a"}), BINDING, POLICY], ["", "", ""], id="a policy that allows the object"
        ),
        pytest.param([NAMESPACE | {"metadata": {"name": "default"}}], [""], id="objects that exist from the start"),
    ],
)
def test_check_reports_the_refusal_of_each_manifest(tmp_path: Path, documents: list[object], want: list[str]) -> None:
    (tmp_path / "all.yaml").write_text("\n---\n".join(json.dumps(each) for each in documents))
    found = check_manifests([str(tmp_path)])
    assert [part in each.refused if part else each.refused == "" for part, each in zip(want, found, strict=True)] == [
        True for _ in want
    ], found


def test_check_applies_admission_policies_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POLICY, BINDING]}))
    (tmp_path / "new.json").write_text(json.dumps(config_map()))
    (checked,) = check_manifests([str(tmp_path / "new.json")], [str(tmp_path / "cluster.json")])
    assert "needs a team" in checked.refused


def test_a_default_priority_class_of_the_cluster_itself_is_accepted(tmp_path: Path) -> None:
    default = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7, "globalDefault": True}
    for name in ("usual", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps({**default, "metadata": {"name": name}}))
    cluster = [str(tmp_path / "usual.json")]
    assert [each.refused for each in check_manifests(cluster, cluster)] == [""]
    (checked,) = check_manifests([str(tmp_path / "other.json")], cluster)
    assert "usual is already marked as default" in checked.refused


def test_the_check_command_prints_a_report_and_sets_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(config_map()))
    bad.write_text(json.dumps(config_map("A")))
    assert main(["check", str(good)]) == 0
    assert "1 objects: 1 accepted, 0 refused, 0 with warnings" in capsys.readouterr().out
    assert main(["check", str(good), str(bad)]) == 1
    assert "ConfigMap default/A: refused: ConfigMap" in capsys.readouterr().out
    assert main(["check", str(bad), "--json"]) == 1
    (reported,) = json.loads(capsys.readouterr().out)
    assert (reported["kind"], reported["name"]) == ("ConfigMap", "A")


VALID = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        pytest.param(
            "a.yaml",
            f"{VALID % 'a'}---\nkind: [\n---\n{VALID % 'b'}---\n# nothing\n---\n- x\n---\nb: *c\n---\n{VALID % 'c'}",
            ["a", (5, 2, "broken YAML: "), "b", (13, 4, "expected an object, got a list of 1"), (15, 5, "alias"), "c"],
            id="YAML: each broken document, and the objects between them",
        ),
        pytest.param(
            "a.yaml",
            f"%YAML 1.1\n---\n{VALID % 'a'}...\n%YAML 1.1\n---\nkind: [\n...\n---\n{VALID % 'b'}",
            ["a", (9, 2, "broken YAML: "), "b"],
            id="YAML with directives and ends of documents",
        ),
        pytest.param(
            "a.yaml",
            f"{VALID % 'a'}---\nkind: \udcff\n---\n{VALID % 'b'}",
            ["a", (5, 2, "text: expected UTF-8, got byte 0xff"), "b"],
            id="bytes that are not text",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- 3\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
            [(4, 1, "expected an object, got 3"), "a"],
            id="an item of a list",
        ),
        pytest.param(
            "a.yaml", "# nothing\n---\n---\nkind: [\n", [(4, 1, "broken YAML: ")], id="empty documents are not counted"
        ),
        pytest.param(
            "a.jsonl",
            "\n".join([json.dumps(config_map("a")), "{x", '"text"', json.dumps(config_map("b")), "{}}"]),
            ["a", (2, 2, "broken JSON: "), (3, 3, "expected an object, got 'text'"), "b", (5, 5, "broken JSON: ")],
            id="lines of JSON",
        ),
        pytest.param(
            "a.json",
            f"{json.dumps(config_map('a'), indent=1)}\n{{\n 1\n}}\n{json.dumps(config_map('b'), indent=1)}",
            ["a", (9, 2, "broken JSON: "), "b"],
            id="JSON on several lines",
        ),
        pytest.param(
            "a.json",
            '{"kind":"List","items":[1,2]}',
            [(1, 1, "an object, got 1"), (1, 1, "got 2")],
            id="a list of JSON",
        ),
    ],
)
def test_check_reports_every_malformed_document_and_checks_the_others(
    tmp_path: Path, name: str, text: str, want: list[str | tuple[int, int, str]]
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "b.yaml").write_text(VALID % "last")
    found = check_manifests([str(path), str(tmp_path / "b.yaml")])
    assert len(found) == len(want) + 1, found
    for each, expected in zip(found, [*want, "last"], strict=True):
        if isinstance(expected, str):
            assert (each.name, each.refused, each.malformed) == (expected, "", "")
        else:
            line, number, problem = expected
            assert (each.where, each.document) == (f"{path}:{line}", number)
            assert problem in each.malformed


def test_the_check_command_prints_malformed_documents_and_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{VALID % 'a'}---\nkind: [\n---\n3\n---\n{VALID % 'A'}")
    assert main(["check", str(path)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path}:5 document 2: malformed: broken YAML: ")
    assert lines[1] == f"{path}:7 document 3: malformed: expected an object, got 3"
    assert lines[2].startswith(f"{path}:9 ConfigMap default/A: refused: ")
    assert lines[3].startswith("2 objects: 1 accepted, 1 refused, 0 with warnings; 2 malformed documents (")
    assert main(["check", str(path), "--json"]) == 2
    reported = json.loads(capsys.readouterr().out)
    assert [each.get("document") for each in reported] == [None, 2, 3, None]
