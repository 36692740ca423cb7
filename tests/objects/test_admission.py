"""Admission of a new pod: priority, tolerations, label keys."""

import re
from typing import Any

import pytest

from bayplan.base.errors import InputError
from bayplan.objects.admission import (
    SYSTEM_PRIORITY_CLASSES,
    PriorityClasses,
    with_default_tolerations,
    with_label_keys,
    with_priority_class,
)
from bayplan.objects.kinds import convert, encode
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PriorityClass


def pod_of(labels_of_pod: dict[str, str] | None = None, /, **spec: Any) -> Pod:
    return convert({"metadata": {"name": "p", "namespace": "n", "labels": labels_of_pod}, "spec": spec}, Pod)


def priority_class(name: str, value: int, policy: str | None = None, *, default: bool = False) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, preemption_policy=policy, global_default=default)


HIGH = priority_class("high", 1000)
POLITE = priority_class("polite", 500, "Never")
EASY = priority_class("easy", 7, default=True)
EASIER = priority_class("easier", 5, "Never", default=True)


@pytest.mark.parametrize(
    ("classes", "spec", "want"),
    [
        pytest.param([], {}, (0, "PreemptLowerPriority", ""), id="no class"),
        pytest.param([HIGH], {}, (0, "PreemptLowerPriority", ""), id="no default class"),
        pytest.param(
            [HIGH], {"priorityClassName": "high"}, (1000, "PreemptLowerPriority", "high"), id="the class it names"
        ),
        pytest.param([POLITE], {"priorityClassName": "polite"}, (500, "Never", "polite"), id="the policy of its class"),
        pytest.param(
            [POLITE],
            {"priorityClassName": "polite", "preemptionPolicy": "PreemptLowerPriority"},
            (500, "PreemptLowerPriority", "polite"),
            id="a policy of its own",
        ),
        pytest.param([EASY], {}, (7, "PreemptLowerPriority", "easy"), id="the default class"),
        pytest.param([EASY, EASIER], {}, (5, "Never", "easier"), id="the lowest of two default classes"),
        pytest.param([EASY], {"priority": 3}, (3, None, ""), id="a priority of its own stays, and nothing is added"),
        pytest.param(
            [],
            {"priorityClassName": "system-node-critical"},
            (2_000_001_000, "PreemptLowerPriority", "system-node-critical"),
            id="the class of nodes' own pods is always there",
        ),
        pytest.param(
            [],
            {"priorityClassName": "system-cluster-critical"},
            (2_000_000_000, "PreemptLowerPriority", "system-cluster-critical"),
            id="the class of the cluster's own pods is always there",
        ),
    ],
)
def test_pods_get_the_priority_of_their_class(
    classes: list[PriorityClass], spec: dict[str, Any], want: tuple[int, str | None, str]
) -> None:
    got = PriorityClasses(classes).resolve(pod_of(**spec)).spec
    assert (got.priority, got.preemption_policy, got.priority_class_name) == want


@pytest.mark.parametrize("own", [None, "Never", "PreemptLowerPriority"])
@pytest.mark.parametrize(("policy", "want"), [(None, "PreemptLowerPriority"), ("Never", "Never")])
def test_another_class_replaces_the_preemption_policy_of_a_pod(own: str | None, policy: str | None, want: str) -> None:
    pod = with_priority_class(pod_of(priority=1, preemptionPolicy=own), priority_class("c", 7, policy))
    assert (pod.spec.priority_class_name, pod.spec.priority, pod.spec.preemption_policy) == ("c", 7, want)


def test_a_missing_priority_class_is_refused() -> None:
    want = "Pod n/p $.spec.priorityClassName: expected the name of a PriorityClass, got 'nope'"
    with pytest.raises(InputError, match=f"^{re.escape(want)}$"):
        PriorityClasses([HIGH]).resolve(pod_of(priorityClassName="nope"))


def test_priority_classes_are_found_by_name() -> None:
    classes = PriorityClasses([HIGH])
    assert classes.find("high") is HIGH
    assert classes.find("system-node-critical") is SYSTEM_PRIORITY_CLASSES[0]
    assert classes.find("nope") is None
    assert classes.default is None


NOT_READY = ("node.kubernetes.io/not-ready", "Exists", "NoExecute", 300)
UNREACHABLE = ("node.kubernetes.io/unreachable", "Exists", "NoExecute", 300)


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="both are added"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            [UNREACHABLE],
            id="one is there",
        ),
        pytest.param([{"operator": "Exists"}], [], id="everything is tolerated"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
            id="another effect does not count",
        ),
    ],
)
def test_pods_get_default_tolerations_for_unreachable_nodes(
    tolerations: list[object], want: list[tuple[object, ...]]
) -> None:
    pod = pod_of(tolerations=tolerations)
    got = with_default_tolerations(pod)
    added = got.spec.tolerations[len(pod.spec.tolerations) :]
    assert [(item.key, item.operator, item.effect, item.toleration_seconds) for item in added] == want
    assert want or got is pod


def terms(**selector: object) -> dict[str, Any]:
    """Affinity and spreading with the same selector and label keys in every place."""
    keys = {"matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["team"]}
    term = {"topologyKey": "zone", **keys, **selector}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
    }
    spread = {"maxSkew": 1, "topologyKey": "zone", "matchLabelKeys": ["app", "absent"], **selector}
    return {"affinity": {"podAffinity": affinity, "podAntiAffinity": affinity}, "topologySpreadConstraints": [spread]}


def expression(key: str, operator: str, value: str) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": [value]}


LABELS = {"app": "web", "team": "blue"}
SAME_APP, OTHER_TEAM = expression("app", "In", "web"), expression("team", "NotIn", "blue")


def test_label_keys_are_merged_into_label_selectors() -> None:
    pod = with_label_keys(pod_of(LABELS, **terms(labelSelector={"matchLabels": {"a": "b"}})))
    spread = {"matchLabels": {"a": "b"}, "matchExpressions": [SAME_APP]}
    want = terms(labelSelector={"matchLabels": {"a": "b"}, "matchExpressions": [SAME_APP, OTHER_TEAM]})
    want["topologySpreadConstraints"][0]["labelSelector"] = spread
    assert encode(pod)["spec"] == want


def test_topology_spread_selectors_are_unchanged_if_the_gate_is_off() -> None:
    pod = pod_of(LABELS, **terms(labelSelector={}))
    merged = with_label_keys(pod, topology_spread=False)
    assert merged.spec.topology_spread_constraints is pod.spec.topology_spread_constraints
    assert merged.spec.affinity != pod.spec.affinity


def test_a_pod_without_selector_labels_or_keys_is_unchanged() -> None:
    for pod in (
        pod_of(LABELS, **terms()),
        pod_of(None, **terms(labelSelector={})),
        pod_of(LABELS),
        pod_of(LABELS, affinity={"nodeAffinity": {}}),
    ):
        assert with_label_keys(pod) is pod
