"""After any actions of host, plugins and cluster, each pod is in exactly one place, and nothing is left over."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PermitPlugin, PreBindPlugin, ReservePlugin
from bayplan.framework.status import SUCCESS, Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.testing import make_pod
from tests.engine.recorders import SECOND, allow, make_scheduler, small_node

NAMES = ("a", "b", "c", "d")
NODES = ("n1", "n2")
KEYS = tuple(f"default/{name}" for name in NAMES)
NO = unschedulable("no")
STATUSES = {"ok": SUCCESS, "no": NO, "boom": error("boom")}


class Moody(ReservePlugin[None], PermitPlugin[None], PreBindPlugin[None]):
    """Returns the result in `moods` for each extension point and pod; tracks its reservations."""

    name = "Moody"
    moods: dict[str, str]
    held: dict[str, int]

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self.held[pod.metadata.name] = 1
        return STATUSES[self.moods.get(f"reserve {pod.metadata.name}", "ok")]

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.held.pop(pod.metadata.name, None)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        mood = self.moods.get(f"permit {pod.metadata.name}", "ok")
        return (Status(Code.WAIT), 10 * SECOND) if mood == "wait" else (STATUSES[mood], 0)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return STATUSES[self.moods.get(f"pre_bind {pod.metadata.name}", "ok")]


class Lives(RuleBasedStateMachine):
    """A scheduler of two nodes and four pods, of which two fit on a node."""

    @initialize()
    def begin(self) -> None:
        self.moods: dict[str, str] = {}
        self.reserved: dict[str, int] = {}
        plugin = type("Moody", (Moody,), {"moods": self.moods, "held": self.reserved})
        self.scheduler = make_scheduler(plugin, in_tree=("NodeResourcesFit",), nodes=NODES)
        self.now = 0
        self.number = 0

    # The cluster.

    @rule(name=st.sampled_from(NAMES))
    def arrive(self, name: str) -> None:
        if f"default/{name}" not in self.scheduler.pods:
            self.number += 1
            pod = make_pod(name).uid(f"{name}-{self.number}").req(cpu="1").obj()
            self.scheduler.handle(None, pod, self.now)

    @rule(key=st.sampled_from(KEYS), begins=st.booleans())
    def delete(self, key: str, begins: bool) -> None:
        pod = self.scheduler.pods.get(key)
        if pod is None:
            return
        if begins and pod.metadata.deletion_timestamp is None:
            going = replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
            self.scheduler.handle(pod, going, self.now)
        else:
            self.scheduler.handle(pod, None, self.now)
            self.reserved.pop(pod.metadata.name, None)

    @rule(name=st.sampled_from(NODES))
    def come_or_go(self, name: str) -> None:
        node = small_node(name)
        if name not in self.scheduler.state.nodes.row_of:
            self.scheduler.handle(None, node, self.now)
            return
        # First, the pods on the node are deleted, and bindings under way to this node fail.
        for pod in [*self.scheduler.pods.values()]:
            if pod.spec.node_name == name:
                self.delete(f"default/{pod.metadata.name}", False)
        for binding in [*self.scheduler.bindings.pending.values()]:
            if binding.node_name == name:
                self.scheduler.binding_failed(binding.queued.pod, "no such node", self.now)
        self.scheduler.handle(node, None, self.now)

    # The host.

    @rule(step=st.sampled_from((1, SECOND, 11 * SECOND, 301 * SECOND)))
    def wait(self, step: int) -> None:
        self.now += step
        self.scheduler.tick(self.now)

    @rule()
    def schedule(self) -> None:
        self.scheduler.schedule_one(self.now)

    def binding(self, pick: int) -> str | None:
        """Return a pod that the host was asked to bind."""
        keys = sorted(self.scheduler.bindings.pending)
        return keys[pick % len(keys)] if keys else None

    @rule(pick=st.integers(0, 3))
    def bind(self, pick: int) -> None:
        key = self.binding(pick)
        if key is None:
            return
        pod, binding = self.scheduler.pods.get(key), self.scheduler.bindings.pending[key]
        if pod is None or pod.metadata.uid != binding.queued.uid or pod.metadata.deletion_timestamp is not None:
            # The API server refuses to bind a pod that is being deleted, or one with another UID.
            self.scheduler.binding_failed(binding.queued.pod, "conflict", self.now)
        elif key in self.scheduler.assumed:
            bound = replace(pod, spec=replace(pod.spec, node_name=binding.node_name))
            [said] = self.scheduler.handle(pod, bound, self.now)
            assert type(said).__name__ == "Emit"

    @rule(pick=st.integers(0, 3))
    def refuse_to_bind(self, pick: int) -> None:
        key = self.binding(pick)
        if key is not None:
            self.scheduler.binding_failed(self.scheduler.bindings.pending[key].queued.pod, "conflict", self.now)
            assert key not in self.scheduler.bindings.pending

    # Plugins.

    @rule(
        point=st.sampled_from(("reserve", "permit", "pre_bind")),
        name=st.sampled_from(NAMES),
        mood=st.sampled_from(("ok", "ok", "no", "boom", "wait")),
    )
    def change_its_mind(self, point: str, name: str, mood: str) -> None:
        if mood != "wait" or point == "permit":
            self.moods[f"{point} {name}"] = mood

    @precondition(lambda self: len(self.scheduler.waiting_pods) > 0)
    @rule(pick=st.integers(0, 3), how=st.sampled_from(("allow", "reject", "plugin allows", "plugin rejects")))
    def decide(self, pick: int, how: str) -> None:
        waiting = [*self.scheduler.waiting_pods]
        chosen = waiting[pick % len(waiting)]
        match how:
            case "allow":
                allow(self.scheduler, chosen.key, "Moody", self.now)
            case "reject":
                self.scheduler.reject_waiting_pod(chosen.key, NO.by("Moody"), self.now)
            case "plugin allows":
                chosen.allow("Moody")
                self.scheduler.tick(self.now)
            case _:
                chosen.reject("Moody", "no")
                self.scheduler.tick(self.now)

    # Invariants.

    @invariant()
    def every_pod_is_in_one_place(self) -> None:
        scheduler = self.scheduler
        scheduler.state.check_invariants()
        scheduler.queue.check_invariants()
        in_flight = {each.key for each in scheduler.queue.in_flight() if isinstance(each, QueuedPod)}
        waiting = {each.key for each in scheduler.waiting_pods}
        assert in_flight == waiting
        assert not scheduler.waiting_pods.decided
        for key in KEYS:
            pod = scheduler.pods.get(key)
            bound = pod is not None and bool(pod.spec.node_name)
            assumed = key in scheduler.assumed
            waits = scheduler.queue.get(key) is not None
            # An assumed pod waits for a permit, or for the host.
            assert assumed <= (key in waiting or key in scheduler.bindings.pending), key
            assert (key in scheduler.state.pods) <= (bound or assumed), key
            if pod is None:
                assert not waits, key
            elif pod.metadata.deletion_timestamp is None:
                assert sum((waits, assumed or key in waiting, bound)) == 1, (key, waits, assumed, bound)

    @invariant()
    def every_reservation_belongs_to_a_pod(self) -> None:
        for name in self.reserved:
            key = f"default/{name}"
            pod = self.scheduler.pods.get(key)
            held = key in self.scheduler.bindings.pending or self.scheduler.waiting_pods.get(key) is not None
            assert held or (pod is not None and pod.spec.node_name), name


Lives.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
TestLives = Lives.TestCase
