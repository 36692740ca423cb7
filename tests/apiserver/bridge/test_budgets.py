"""PodDisruptionBudgets of a server: events, and evictions that depend on the status."""

from __future__ import annotations

import pytest

from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, template, workload
from tests.apiserver.client import Document

PODS = f"{API}/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BUDGET = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}}


def test_evictions_are_refused_if_the_expected_number_of_pods_is_unknown() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 4}))
    fixture.post(BUDGETS, BUDGET)
    fixture.run()
    assert fixture.get(f"{BUDGETS}/b").at("status.disruptionsAllowed") == 1
    first = fixture.names("pods")[0]
    fixture.post(f"{BATCH}/jobs", job("calc"))
    fixture.run()
    problem = "jobs.batch does not implement the scale subresource"
    text = f"Failed to calculate the number of expected pods: {problem}"
    assert fixture.reported("PodDisruptionBudget") == [f"CalculateExpectedPodCountFailed: {text}"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first}}
    assert fixture.post(f"{PODS}/{first}/eviction", eviction).status == 429


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param(["x", "x"], 4, id="a creation, a change, and both steps of a deletion of a pod with two budgets"),
        pytest.param(["x", "y"], 0, id="a pod with one budget"),
    ],
)
def test_a_pod_with_several_budgets_is_reported_at_each_change(labels: list[str], want: int) -> None:
    fixture = BridgeFixture(kubelet=False)
    for number, label in enumerate(labels):
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": label}}}
        fixture.post(BUDGETS, {"metadata": {"name": f"b{number}"}, "spec": spec})
    fixture.run()
    fixture.post(PODS, template(name="plain"))
    fixture.run(schedule=False)
    fixture.patch(f"{PODS}/plain", {"metadata": {"labels": {"more": "1"}}})
    fixture.run(schedule=False)
    fixture.delete(f"{PODS}/plain", {"gracePeriodSeconds": 0})
    fixture.run(schedule=False)
    text = 'Pod "default"/"plain" matches multiple PodDisruptionBudgets.  Chose "b0" arbitrarily.'
    assert fixture.reported("Pod") == [f"MultiplePodDisruptionBudgets: {text}"] * bool(want)
    assert [each["count"] for each in fixture.documents("events") if each["type"] == "Warning"] == [want] * bool(want)


def test_only_a_budget_without_pods_reports_that_it_has_none() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, template(name="plain"))
    fixture.post(BUDGETS, {**BUDGET, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}})
    fixture.run()
    assert fixture.reported("PodDisruptionBudget") == []
    fixture.delete(f"{PODS}/plain")
    fixture.run(60)
    assert fixture.reported("PodDisruptionBudget") == ["NoPods: No matching pods found"]


@pytest.mark.parametrize(
    ("limit", "is_managed", "want"),
    [
        pytest.param({"maxUnavailable": 1}, False, True, id="maxUnavailable is relative to the scale"),
        pytest.param({"minAvailable": "50%"}, False, True, id="a percentage is relative to the scale"),
        pytest.param({"minAvailable": 1}, False, False, id="a number is not relative to the scale"),
        pytest.param({"maxUnavailable": 1}, True, False, id="the pods have a controller"),
    ],
)
def test_a_budget_reports_pods_without_a_controller(limit: Document, is_managed: bool, want: bool) -> None:
    fixture = BridgeFixture(nodes=1)
    if is_managed:
        fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 1}))
    else:
        fixture.post(PODS, template(name="plain"))
    expressions = [{"key": "app", "operator": "In", "values": ["x", "y"]}, {"key": "app", "operator": "Exists"}]
    selector: Document = {"matchLabels": {"app": "x"}, "matchExpressions": expressions}
    fixture.run()
    fixture.post(BUDGETS, {"metadata": {"name": "b"}, "spec": {**limit, "selector": selector}})
    fixture.run()
    shown = (
        "&LabelSelector{MatchLabels:map[string]string{app: x,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:app,Operator:In,Values:[x y],},"
        "LabelSelectorRequirement{Key:app,Operator:Exists,Values:[],},},}"
    )
    start = (
        f"UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be unmanaged. As"
    )
    assert [each.startswith(start) for each in fixture.reported("PodDisruptionBudget")] == [True] * want
