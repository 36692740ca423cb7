"""Random requests: both stores always agree, no controller fails, and each workload has its pods at the end."""

from __future__ import annotations

from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bayplan.apiserver.store.store import Snapshot
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.cluster.owned_pods import is_active
from bayplan.objects.workloads import ReplicaSet, StatefulSet
from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, workload
from tests.apiserver.client import PODS, Document, pod

NAMES = st.sampled_from(["a", "b"])
PLURALS = {
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
}
POLICIES = st.sampled_from(["Background", "Foreground", "Orphan"])


class RandomRequests(RuleBasedStateMachine):
    """Clients, a clock and a scheduler, all at random."""

    snapshot: Snapshot | None = None

    @initialize(lasting=st.sampled_from([0, 15_000_000_000]), delay=st.sampled_from([0, 1_500_000_000]))
    def begin(self, lasting: int, delay: int) -> None:
        pods = KubeletOptions(container_statuses=True, termination_time_ns=lasting, start_delay_ns=delay)
        self.fixture = BridgeFixture(nodes=2, pods=pods, check=True)

    @rule(kind=st.sampled_from(sorted(PLURALS)), name=NAMES, replicas=st.integers(0, 5), image=st.sampled_from("12"))
    def apply(self, kind: str, name: str, replicas: int, image: str) -> None:
        name = f"{name}-{kind.lower()}"
        labels = {"app": name}
        spec: Document = {"selector": {"matchLabels": labels}}
        if kind != "DaemonSet":
            spec["replicas"] = replicas
        document = workload(kind, name, spec, labels=labels, image=f"app:{image}")
        if self.fixture.post(f"{APPS}/{PLURALS[kind]}", document).status == 409:
            self.fixture.patch(f"{APPS}/{PLURALS[kind]}/{name}", {"spec": document["spec"]})

    @rule(name=NAMES, parallelism=st.integers(1, 3), run_time=st.sampled_from(["", "3s", "20s"]))
    def start_job(self, name: str, parallelism: int, run_time: str) -> None:
        self.fixture.post(f"{BATCH}/jobs", job(name, run_time, {"completions": 3, "parallelism": parallelism}))

    @rule(kind=st.sampled_from(sorted(PLURALS)), name=NAMES, policy=POLICIES)
    def delete(self, kind: str, name: str, policy: str) -> None:
        self.fixture.delete(f"{APPS}/{PLURALS[kind]}/{name}-{kind.lower()}", {"propagationPolicy": policy})

    @rule(name=NAMES, policy=POLICIES)
    def delete_job(self, name: str, policy: str) -> None:
        self.fixture.delete(f"{BATCH}/jobs/{name}", {"propagationPolicy": policy})

    @rule(number=st.integers(0, 20), grace=st.sampled_from([None, 0, 5]))
    def delete_pod(self, number: int, grace: int | None) -> None:
        names = self.fixture.names("pods")
        if names:
            self.fixture.delete(f"{PODS}/{names[number % len(names)]}", {"gracePeriodSeconds": grace})

    @rule(number=st.integers(0, 20), value=st.sampled_from(["x", "y"]))
    def label_pod(self, number: int, value: str) -> None:
        names = self.fixture.names("pods")
        if names:
            self.fixture.patch(f"{PODS}/{names[number % len(names)]}", {"metadata": {"labels": {"note": value}}})

    @rule(name=NAMES)
    def add_pod(self, name: str) -> None:
        self.fixture.post(PODS, pod(f"own-{name}"))

    @rule(number=st.integers(0, 2), cordoned=st.booleans())
    def cordon(self, number: int, cordoned: bool) -> None:
        self.fixture.patch(f"{API}/nodes/n{number}", {"spec": {"unschedulable": cordoned or None}})

    @rule(number=st.integers(0, 2))
    def add_or_delete_node(self, number: int) -> None:
        if self.fixture.delete(f"{API}/nodes/n{number}").status == 404:
            self.fixture.add_node(f"n{number}")

    @rule(policy=POLICIES)
    def begin_and_end_a_namespace(self, policy: str) -> None:
        if self.fixture.post(f"{API}/namespaces", {"metadata": {"name": "demo"}}).status == 201:
            path = f"{APPS}/deployments".replace("default", "demo")
            self.fixture.post(path, workload("Deployment", "web", {"replicas": 3}))
        else:
            self.fixture.delete(f"{API}/namespaces/demo", {"propagationPolicy": policy})

    @rule()
    def keep(self) -> None:
        self.snapshot = self.fixture.store.snapshot()

    @rule()
    def go_back(self) -> None:
        if self.snapshot is not None:
            self.fixture.store.restore(self.snapshot)

    @rule(budget=st.integers(1, 300_000), schedule=st.booleans())
    def do_a_little(self, budget: int, schedule: bool) -> None:
        self.fixture.bridge.advance(self.fixture.bridge.now_ns(), budget)
        if schedule:
            self.fixture.schedule()

    @rule(seconds=st.sampled_from([0, 1, 7, 61]))
    def let_time_pass(self, seconds: int) -> None:
        self.fixture.run(seconds)

    @invariant()
    def both_stores_agree(self) -> None:
        if hasattr(self, "fixture"):
            self.fixture.bridge.check()
            assert self.fixture.bridge.bugs() == {}

    def teardown(self) -> None:
        if not hasattr(self, "fixture"):
            return
        for number in range(2):
            self.fixture.add_node(f"n{number}")
            self.fixture.patch(f"{API}/nodes/n{number}", {"spec": {"unschedulable": None}})
        self.fixture.run(700)
        store = self.fixture.bridge.store
        assert self.fixture.bridge.failures() == {}
        for kind in (ReplicaSet, StatefulSet):
            for item in store.all(kind):
                pods = [each for each in store.owned_pods(item.metadata.uid) if is_active(each)]
                assert len(pods) == cast("ReplicaSet", item).spec.replicas, item.key
        for item in store.pods.values():
            assert item.status.phase in ("Running", "Succeeded"), item.key


RandomRequests.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestRandomRequests = RandomRequests.TestCase
