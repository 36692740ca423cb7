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
