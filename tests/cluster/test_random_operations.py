"""Random operations: after each of them the cluster settles, indexes are consistent, and each workload has its pods."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bayplan.cluster.owned_pods import is_active
from bayplan.controllers.daemon_nodes import NodeEligibility, target_node
from bayplan.controllers.job_status import finish_condition
from bayplan.controllers.writer import Propagation
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import (
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
)
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, job, node, pod, template, workload

NAMES = st.sampled_from(["a", "b"])
IMAGES = st.sampled_from(["app:1", "app:2"])
KINDS: dict[str, type[KubernetesObject]] = {
    "Deployment": Deployment,
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
    "DaemonSet": DaemonSet,
    "Job": Job,
}


class RandomOperations(RuleBasedStateMachine):
    """A user, a clock and a scheduler, all at random."""

    @initialize(seed=st.integers(0, 3), lasting_s=st.sampled_from([0, 15]), delay=st.sampled_from([0, 2]))
    def begin(self, seed: int, lasting_s: int, delay: int) -> None:
        self.fixture = ClusterFixture(nodes=2, seed=seed, termination_s=lasting_s, start_delay_s=delay)

    @rule(name=NAMES, image=IMAGES, replicas=st.integers(0, 5))
    def deploy(self, name: str, image: str, replicas: int) -> None:
        # A Deployment that is scaled and changed to Recreate during a rollout gets stuck, as it does upstream.
        strategy = {"type": "RollingUpdate" if name == "a" else "Recreate"}
        self.fixture.apply(workload("Deployment", f"d-{name}", image=image, replicas=replicas, strategy=strategy))

    @rule(name=NAMES, image=IMAGES, replicas=st.integers(0, 4), parallel=st.booleans())
    def set_up(self, name: str, image: str, replicas: int, parallel: bool) -> None:
        policy = "Parallel" if parallel else "OrderedReady"
        key = f"default/s-{name}"
        if self.fixture.store.get(StatefulSet, key) is None:
            self.fixture.apply(
                workload("StatefulSet", f"s-{name}", image=image, replicas=replicas, podManagementPolicy=policy)
            )
        else:
            self.fixture.apply(workload("StatefulSet", f"s-{name}", image=image, replicas=replicas))

    @rule(image=IMAGES, surge=st.booleans(), zone=st.sampled_from(["", "x"]))
    def run_daemons(self, image: str, surge: bool, zone: str) -> None:
        rolling = {"maxSurge": 1, "maxUnavailable": 0} if surge else {"maxUnavailable": 1}
        body = template(image, nodeSelector={"zone": zone} if zone else {})
        self.fixture.apply(
            workload(
                "DaemonSet", "agent", template=body, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling}
            )
        )

    @rule(name=NAMES, completions=st.integers(1, 4), parallelism=st.integers(0, 3), fails=st.booleans())
    def compute(self, name: str, completions: int, parallelism: int, fails: bool) -> None:
        if self.fixture.store.get(Job, f"default/j-{name}") is None:
            self.fixture.apply(
                job(
                    f"j-{name}",
                    run_time="5s",
                    exit_code=int(fails),
                    completions=completions,
                    parallelism=parallelism,
                    completionMode="Indexed" if completions % 2 else "NonIndexed",
                    backoffLimit=2,
                )
            )

    @rule(name=NAMES, run_time=st.sampled_from(["0s", "3s", "100s"]))
    def run_a_pod(self, name: str, run_time: str) -> None:
        self.fixture.apply(pod(f"p-{name}", annotations={"bayplan.io/run-time": run_time}))

    @rule(
        number=st.integers(0, 3),
        zone=st.sampled_from(["", "x"]),
        taint=st.sampled_from(["", "NoSchedule", "NoExecute"]),
    )
    def change_a_node(self, number: int, zone: str, taint: str) -> None:
        taints = [{"key": "mine", "effect": taint}] if taint else []
        self.fixture.apply(node(f"node-{number}", labels={"zone": zone} if zone else {}, taints=taints))

    @rule(number=st.integers(0, 3))
    def remove_a_node(self, number: int) -> None:
        self.fixture.delete(Node, f"node-{number}")

    @rule(kind=st.sampled_from(sorted(KINDS)), place=st.integers(0, 9), propagation=st.sampled_from(list(Propagation)))
    def delete_something(self, kind: str, place: int, propagation: Propagation) -> None:
        found = list(self.fixture.store.all(KINDS[kind]))
        if found:
            item = found[place % len(found)]
            self.fixture.delete(KINDS[kind], item.key, propagation=propagation)

    @rule(place=st.integers(0, 99), grace=st.sampled_from([None, 0]))
    def delete_a_pod(self, place: int, grace: int | None) -> None:
        keys = list(self.fixture.store.pods)
        if keys:
            self.fixture.delete(Pod, keys[place % len(keys)], grace_seconds=grace)

    @rule(seconds=st.sampled_from([0, 1, 7, 40]), binds=st.booleans())
    def let_time_pass(self, seconds: int, binds: bool) -> None:
        self.fixture.binds = binds
        self.fixture.run_until(self.fixture.now_ns / SECOND + seconds)

    @invariant()
    def indexes_agree(self) -> None:
        if hasattr(self, "fixture"):
            self.fixture.store.check_invariants()

    def teardown(self) -> None:
        if not hasattr(self, "fixture"):
            return
        fixture = self.fixture
        # Add nodes, and advance the time far enough for the cluster to settle.
        for number in range(2):
            fixture.apply(node(f"node-{number}"))
        fixture.binds = True
        fixture.run_until(fixture.now_ns / SECOND + 3000)
        assert fixture.cluster.failures() == {}
        check_workloads(fixture)


def check_workloads(fixture: ClusterFixture) -> None:
    """Check that every workload has the pods it asks for, and that its status agrees."""
    for replica_set in fixture.store.all(ReplicaSet):
        owned = fixture.store.owned_pods(replica_set.metadata.uid)
        assert len(owned.active) == replica_set.spec.replicas == replica_set.status.ready_replicas
    for deployment in fixture.store.all(Deployment):
        status = deployment.status
        assert status.available_replicas == status.updated_replicas == status.replicas == deployment.spec.replicas
    for stateful_set in fixture.store.all(StatefulSet):
        pods = fixture.store.owned_pods(stateful_set.metadata.uid)
        want = [f"{stateful_set.metadata.name}-{ordinal}" for ordinal in range(stateful_set.spec.replicas or 0)]
        assert sorted(item.metadata.name for item in pods) == want
        images = {item.spec.containers[0].image for item in pods}
        assert images <= {stateful_set.spec.template.spec.containers[0].image}
        assert stateful_set.status.ready_replicas == len(want)
    for daemon_set in fixture.store.all(DaemonSet):
        eligibility = NodeEligibility(daemon_set.spec.template)
        nodes = fixture.store.nodes.values()
        wanted = {item.metadata.name for item in nodes if eligibility.eligibility_of(item).should_run}
        tolerated = {item.metadata.name for item in nodes if eligibility.eligibility_of(item).may_stay}
        # A pod whose node got a taint before the pod was bound keeps waiting for that node, and counts.
        places = [target_node(item) for item in fixture.store.owned_pods(daemon_set.metadata.uid).active.values()]
        assert len(places) == len(set(places))
        assert wanted <= set(places) <= tolerated
        totals = daemon_set.status
        assert totals.desired_number_scheduled == totals.number_ready == len(wanted)
        assert totals.number_misscheduled == len(set(places) - wanted)
    for item in fixture.store.all(Job):
        if item.spec.parallelism:
            condition = finish_condition(item)
            assert condition is not None
            assert not fixture.store.owned_pods(item.metadata.uid).uncounted
            if condition.type == "Complete":
                assert item.status.succeeded == item.spec.completions
            else:
                assert item.status.failed > 2
    for stray in fixture.store.pods.values():
        assert stray.metadata.deletion_timestamp is None
        assert target_node(stray) in fixture.store.nodes or not is_active(stray)


TestRandomOperations = RandomOperations.TestCase
TestRandomOperations.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)
