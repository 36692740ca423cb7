"""Values outside their field's fixed set: refused as by kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.inputs import load_inputs
from bayplan.formats.suggestions import suggest_kind

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: i}]\n"
TERM = "- matchExpressions: [{key: a, operator: %s, values: [b]}]\n"
NODE_AFFINITY = (
    POD
    + "  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n        "
    + TERM
)
SPREAD = POD + "  topologySpreadConstraints:\n  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: %s}\n"
JOB = (
    "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j}\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    spec:\n"
    "      template:\n        spec:\n          restartPolicy: %s\n"
)
LABEL_OPERATORS = "'In', 'NotIn', 'Exists' or 'DoesNotExist'"


def loaded(text: str, folder: Path) -> str:
    file = folder / "f.yaml"
    file.write_text(text)
    try:
        load_inputs([str(file)])
    except InputError as problem:
        return str(problem).replace(str(file), "f")
    return ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            NODE_AFFINITY % "in",
            "f:10 Pod p $.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
            "matchExpressions[0].operator: expected 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt' or 'Lt', got 'in'; try 'In'",
            id="an operator of node affinity in the wrong case",
        ),
        pytest.param(
            POD
            + "  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: "
            "{topologyKey: z, labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}}]}}\n",
            "f:6 Pod p $.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm."
            f"labelSelector.matchExpressions[0].operator: expected {LABEL_OPERATORS}, got 'Gt'",
            id="an operator that label selectors don't have",
        ),
        pytest.param(
            POD + "  tolerations: [{key: a, operator: Exists}, {key: a, operator: exists}]\n",
            "f:6 Pod p $.spec.tolerations[1].operator: expected 'Equal', 'Exists', 'Lt' or 'Gt', got 'exists'; try 'Exists'",
            id="an operator of a toleration",
        ),
        pytest.param(
            POD + "  tolerations: [{key: a, effect: NoShedule}]\n",
            "f:6 Pod p $.spec.tolerations[0].effect: expected 'NoSchedule', 'PreferNoSchedule' or 'NoExecute', got 'NoShedule'; "
            "try 'NoSchedule'",
            id="the effect of a toleration",
        ),
        pytest.param(
            SPREAD % "DontSchedule",
            "f:7 Pod p $.spec.topologySpreadConstraints[0].whenUnsatisfiable: expected 'DoNotSchedule' or 'ScheduleAnyway', "
            "got 'DontSchedule'; try 'DoNotSchedule'",
            id="whenUnsatisfiable",
        ),
        pytest.param(
            JOB % "never",
            "f:10 CronJob j $.spec.jobTemplate.spec.template.spec.restartPolicy: expected 'Always', 'OnFailure' or 'Never', "
            "got 'never'; try 'Never'",
            id="the pods that a CronJob makes",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\nspec: {taints: [{key: a, effect: Nope}]}\n",
            "f:4 Node n0 $.spec.taints[0].effect: expected 'NoSchedule', 'PreferNoSchedule' or 'NoExecute', got 'Nope'",
            id="a taint",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector:\n    matchExpressions:\n"
            "    - {key: a, operator: notin, values: [b]}\n",
            f"f:7 Deployment d $.spec.selector.matchExpressions[0].operator: expected {LABEL_OPERATORS}, got 'notin'; try 'NotIn'",
            id="the selector of a workload",
        ),
        pytest.param(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {accessModes: [ReadWriteOnce, RWX]}\n",
            "f:4 PersistentVolumeClaim c $.spec.accessModes[1]: expected 'ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany' or "
            "'ReadWriteOncePod', got 'RWX'",
            id="an access mode of a claim",
        ),
    ],
)
def test_values_outside_a_fixed_set_are_refused_with_a_suggestion(text: str, want: str, tmp_path: Path) -> None:
    assert loaded(text, tmp_path) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param((NODE_AFFINITY % "Gt").replace("[b]", "['1']"), id="Gt of a node's label"),
        pytest.param(POD + "  tolerations: [{}, {key: a, operator: '', effect: null}]\n", id="nothing is the default"),
        pytest.param(SPREAD % "ScheduleAnyway", id="soft spreading"),
        pytest.param(JOB % "OnFailure", id="a job"),
    ],
)
def test_values_in_a_fixed_set_are_accepted(text: str, tmp_path: Path) -> None:
    assert loaded(text, tmp_path) == ""


@pytest.mark.parametrize(
    ("api_version", "kind", "want"),
    [
        pytest.param("app/v1", "Deployment", "'apiVersion: apps/v1'", id="a group with a letter missing"),
        pytest.param("deployments/v1", "Deployment", "'apiVersion: apps/v1'", id="a group without a dot"),
        pytest.param("storage.k8s.oi/v1", "StorageClass", "'apiVersion: storage.k8s.io/v1'", id="letters swapped"),
        pytest.param("example.com/v1", "Deployment", "", id="a group of custom resources"),
        pytest.param("app/v1", "Gadget", "", id="neither group nor kind is known"),
    ],
)
def test_suggest_kind_corrects_the_api_group(api_version: str, kind: str, want: str) -> None:
    assert suggest_kind(api_version, kind) == want
