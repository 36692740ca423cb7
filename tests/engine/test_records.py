"""Full records contain what a cycle evaluated, even if the cycle did not use the plan's own results."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.engine.records import Decision, Outcome, RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration, load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.builders import make_node, make_pod
from tests.engine.sampled_cycles import sampled_cycles

NO_SCORES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}],
}


def scheduler_of(nodes: Iterable[Node], *, scores: bool = True) -> Scheduler:
    configuration = default_configuration() if scores else load_configuration(msgspec.json.encode(NO_SCORES))
    scheduler = assemble_scheduler(
        configuration, in_tree_registry(), feature_gates=FeatureGates(), record_level=RecordLevel.FULL
    )
    for node in nodes:
        scheduler.handle(None, node, 0)
    return scheduler


def three_nodes() -> list[Node]:
    """n0 has two soft taints, n1 one, n2 none."""
    builders = [make_node(f"n{number}").capacity(cpu="4", memory="8Gi") for number in range(3)]
    builders[0].taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")
    builders[1].taint("a", effect="PreferNoSchedule")
    return [builder.obj() for builder in builders]


def nominate(scheduler: Scheduler, pod: Pod, node: str) -> None:
    """Nominate a pending pod to a node, as after a preemption."""
    scheduler.pods[key_of(pod)] = pod
    scheduler.queue.nominator.add(pod, node)


def schedule(scheduler: Scheduler, pod: Pod) -> Decision:
    scheduler.handle(None, pod, 0)
    assert scheduler.schedule_one(0) is not None
    return scheduler.records.decision(len(scheduler.records) - 1)


def taint_scores(decision: Decision) -> list[int]:
    scores: list[int] = decision.normalized[decision.scorers.index("TaintToleration")].tolist()
    return scores


def test_a_node_reserved_for_a_nominated_pod_is_infeasible_and_not_scored() -> None:
    scheduler = scheduler_of(three_nodes())
    first = schedule(scheduler, make_pod("first").req(cpu="100m").obj())
    assert taint_scores(first) == [0, 50, 100]
    nominate(scheduler, make_pod("vip").req(cpu="4").priority(100).obj(), "n0")
    second = schedule(scheduler, make_pod("second").req(cpu="100m").obj())
    assert second.feasible.tolist() == [False, True, True]
    assert taint_scores(second)[1:] == [0, 100]
    assert second.total[0] == -1
    assert second.record.total == second.total.max()
    assert second.ties == ("n2",)
    status = second.first_failure(0)
    assert status is not None
    assert status.reasons == ("Insufficient cpu",)
    assert second.codes[:, 0].tolist() == [0] * len(second.filters)
    scheduler.queue.nominator.remove(uid_of(scheduler.pods["default/vip"]))
    third = schedule(scheduler, make_pod("third").req(cpu="100m").obj())
    assert taint_scores(third) == [0, 50, 100]
    assert np.array_equal(third.feasible, [True, True, True])


def test_a_small_nominated_pod_excludes_no_node() -> None:
    scheduler = scheduler_of(three_nodes())
    nominate(scheduler, make_pod("vip").req(cpu="1").priority(100).obj(), "n0")
    decision = schedule(scheduler, make_pod("first").req(cpu="100m").obj())
    assert decision.feasible.all()
    assert decision.overrides == {}
    assert taint_scores(decision) == [0, 50, 100]
    assert decision.record.total == decision.total.max()


def test_only_the_pods_own_nominated_node_is_examined() -> None:
    scheduler = scheduler_of(three_nodes())
    schedule(scheduler, make_pod("first").req(cpu="100m").obj())
    decision = schedule(scheduler, make_pod("second").req(cpu="100m").nominated("n0").obj())
    assert decision.record.node == "n0"
    assert decision.examined.tolist() == [True, False, False]
    assert decision.feasible.tolist() == [True, False, False]
    assert decision.ties == ("n0",)
    assert decision.scorers == ()
    assert decision.first_failure(1) is None


def conflicting(name: str) -> Pod:
    """A pod that wants two nodes at once, which PreFilter rejects."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]} for node in ("n0", "n1")]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return make_pod(name).spec(affinity=affinity).obj()


def test_a_pre_filter_rejection_covers_the_nodes_of_its_cycle() -> None:
    scheduler = scheduler_of(three_nodes())
    before = schedule(scheduler, conflicting("one"))
    scheduler.handle(None, make_node("n3").capacity(cpu="4").obj(), 0)
    after = schedule(scheduler, conflicting("two"))
    assert before.names == ("n0", "n1", "n2")
    assert after.names == ("n0", "n1", "n2", "n3")
    assert after.filters == ()
    assert not after.feasible.any()
    status = after.first_failure(3)
    assert status is not None
    assert (status.plugin, status) == ("NodeAffinity", after.pre_filter)


def test_nodes_excluded_by_pre_filter_have_their_own_status() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = make_pod("daemon").req(cpu="8").spec(affinity={"nodeAffinity": required}).obj()
    decision = schedule(scheduler_of(three_nodes()), pod)
    assert decision.examined.tolist() == [False, True, False]
    reasons = [status.reasons if (status := decision.first_failure(row)) else () for row in range(3)]
    left_out = ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
    assert reasons == [left_out, ("Insufficient cpu",), left_out]
    plugins = [decision.rejecting_plugin(row) for row in range(3)]
    assert plugins == ["NodeAffinity", "NodeResourcesFit", "NodeAffinity"]


def test_a_record_without_nodes_is_empty() -> None:
    scheduler = scheduler_of(three_nodes()[:1])
    schedule(scheduler, make_pod("first").req(cpu="100m").obj())
    scheduler.handle(scheduler.state.nodes.nodes[0], None, 0)
    decision = schedule(scheduler, make_pod("second").req(cpu="100m").obj())
    assert decision.names == ()
    assert decision.total.shape == (0,)
    assert decision.record.message == "no nodes available to schedule pods"
    assert decision.record.outcome is Outcome.UNSCHEDULABLE


def test_a_profile_without_score_plugins_chooses_the_first_feasible_node() -> None:
    decision = schedule(scheduler_of(three_nodes(), scores=False), make_pod("first").req(cpu="100m").obj())
    assert decision.scorers == ()
    assert decision.feasible.tolist() == [True, False, False]
    assert decision.examined.tolist() == [True, False, False]
    assert (decision.ties, decision.record.node) == (("n0",), "n0")


@pytest.mark.parametrize(
    ("level", "want"),
    [(RecordLevel.OFF, 0), (RecordLevel.SUMMARY, 1), (RecordLevel.FULL, 1)],
    ids=lambda value: str(value),
)
def test_each_record_level_stores_what_it_promises(level: RecordLevel, want: int) -> None:
    scheduler = assemble_scheduler(
        default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), record_level=level
    )
    scheduler.handle(None, make_node("n0").capacity(cpu="4").obj(), 0)
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    assert len(scheduler.records) == len(list(scheduler.records)) == want
    if level is RecordLevel.SUMMARY:
        with pytest.raises(LookupError, match="record level full"):
            scheduler.records.decision(0)


def test_keyframes_of_equal_nodes_take_little_memory() -> None:
    nodes = [make_node(f"n{number:04}").capacity(cpu="4", memory="8Gi").obj() for number in range(1000)]
    scheduler = scheduler_of(nodes)
    before = scheduler.records.nbytes
    schedule(scheduler, make_pod("one").req(cpu="1").obj())
    schedule(scheduler, make_pod("two").req(cpu="2").obj())
    assert scheduler.records.nbytes - before < 16_000


def test_records_of_sampled_searches_cover_only_the_visited_nodes() -> None:
    records = sampled_cycles(400, 6).records
    starts = []
    for number, record in enumerate(records):
        decision = records.decision(number)
        assert 100 <= record.feasible_nodes < record.evaluated_nodes < 400
        assert decision.examined.sum() == record.evaluated_nodes
        assert decision.feasible.sum() == record.feasible_nodes
        assert decision.allowed.all()
        assert set(np.flatnonzero(decision.feasible)) <= set(np.flatnonzero(decision.examined))
        assert record.node in decision.ties
        assert len(decision.ties) == record.ties
        assert record.total == decision.total.max()
        assert ((decision.total >= 0) == decision.feasible).all()
        assert decision.first_failure(int(np.flatnonzero(~decision.examined)[0])) is None
        starts.append(decision.examined.tolist())
    assert starts[0] != starts[1] != starts[2]
