"""The read models of finished forks."""

from __future__ import annotations

from bayplan.engine.decision import Outcome
from bayplan.framework.feature_gates import FeatureGates
from bayplan.http_api.read_models import ForkReadModel
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Apply, Delete
from bayplan.testing import make_pod
from tests.sim.simulations import SECOND, node, pod, simulate


def test_a_fork_counts_only_the_attempts_of_the_newest_pod_of_a_name() -> None:
    tenth = SECOND // 10
    result = simulate(
        (0, node("n")),
        (1 * tenth, pod("p", "8")),
        (2 * tenth, Delete(Pod, "default/p")),
        (3 * tenth, Apply(make_pod("p").req(cpu="2").scheduler("nobody").obj())),
    )
    assert [record.outcome for record in result.records] == [Outcome.UNSCHEDULABLE]
    pods = ForkReadModel(result, FeatureGates()).read_model.pods
    row = pods.rows["default/p"]
    assert (pods.attempts[row], pods.messages[pods.message[row]]) == (0, "")
