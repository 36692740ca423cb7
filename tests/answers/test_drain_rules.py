"""Disruption budgets in drains: which evictions they refuse, and how many they allow at one moment."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.answers.drain_rules import Budgets, Disruptions
from bayplan.objects.pod import Pod, PodCondition
from bayplan.objects.policy import PodDisruptionBudget
from tests.answers.clusters import running
from tests.answers.test_node_removal import budget

REFUSED = "disruption budget web allows no disruption"


def disruption_budget(
    allowed: int, *, current: int = 2, desired: int = 2, policy: str | None = None
) -> PodDisruptionBudget:
    made = budget(allowed)
    assert isinstance(made, PodDisruptionBudget)
    status = replace(made.status, current_healthy=current, desired_healthy=desired)
    return replace(made, spec=replace(made.spec, unhealthy_pod_eviction_policy=policy), status=status)


def pod(name: str = "web-1", *, ready: str = "True", phase: str = "Running") -> Pod:
    made = running(name, "n1").obj()
    conditions = (PodCondition(type="Ready", status=ready),)
    return replace(made, status=replace(made.status, phase=phase, conditions=conditions))


@pytest.mark.parametrize(
    ("item", "evicted", "want"),
    [
        pytest.param(disruption_budget(1), pod(), "", id="a disruption is left"),
        pytest.param(disruption_budget(0), pod(), REFUSED, id="no disruption is left"),
        pytest.param(disruption_budget(0), pod(phase="Pending"), "", id="a pod that has not started"),
        pytest.param(disruption_budget(0), pod(ready="False"), "", id="an unready pod of a healthy application"),
        pytest.param(
            disruption_budget(0, current=1),
            pod(ready="False"),
            REFUSED,
            id="an unready pod of an unhealthy application",
        ),
        pytest.param(
            disruption_budget(0, current=1, policy="AlwaysAllow"),
            pod(ready="False"),
            "",
            id="unready pods are always evicted",
        ),
        pytest.param(
            disruption_budget(0, current=0, desired=0), pod(ready="False"), REFUSED, id="a budget without desired pods"
        ),
    ],
)
def test_a_budget_refuses_evictions_like_the_eviction_api(item: PodDisruptionBudget, evicted: Pod, want: str) -> None:
    assert Budgets([item]).eviction_problem(evicted) == want
    assert Disruptions(Budgets([item])).try_evict(evicted) is (want == "")


def test_several_budgets_refuse_every_eviction() -> None:
    second = replace(disruption_budget(1), metadata=replace(disruption_budget(1).metadata, name="again"))
    refused = Budgets([disruption_budget(1), second]).eviction_problem(pod())
    assert refused == "more than one disruption budget selects the pod: again, web"


def test_evictions_at_one_moment_are_limited_by_the_allowed_disruptions() -> None:
    disruptions = Disruptions(Budgets([disruption_budget(2)]))
    assert [disruptions.try_evict(pod(f"web-{number}")) for number in range(3)] == [True, True, False]


def test_one_unready_pod_is_evicted_although_the_budget_allows_no_disruption() -> None:
    disruptions = Disruptions(Budgets([disruption_budget(0)]))
    assert [disruptions.try_evict(pod(f"web-{number}", ready="False")) for number in range(2)] == [True, False]
