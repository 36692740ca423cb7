"""Plans by pod signature: found by the identity of a pod's parts, then by their bytes, and kept within a budget of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from weakref import WeakValueDictionary

import msgspec
from msgspec import structs

from bayplan.engine.plan import Plan
from bayplan.engine.rule_results import RuleResults
from bayplan.framework.plugin import Plugin
from bayplan.framework.profile import Profile
from bayplan.objects.meta import OwnerReference
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.state.cluster_state import ClusterState

BYTES_PER_ROW = 48
"""About what a plan and the parts that only it needs hold per row."""

PROBATION = 4
"""Plans that were seen once only are kept briefly, so that pods that all differ don't push out templates."""

REMEMBERED = 8192
"""Signatures that are remembered longer than their plans: one that comes again earns its plan a place."""

IDENTITIES = 4096
"""So many pods' parts are known by their identity; then all are forgotten."""

RECENT_SPECS = 192
"""A spec that comes again before so many others, or twice as many, is one that pods share: it is worth knowing by its identity."""


NO_RESOURCES = ResourceRequirements()


class _Latest(msgspec.Struct, frozen=True, eq=False):
    """What a pod's signature is made of, and its plan: comparing is faster than encoding."""

    profile: Profile
    namespace: str
    labels: dict[str, str]
    controller: tuple[str, str, str] | None
    spec: PodSpec
    plan: Plan
    signature: bytes

    def serves(
        self,
        profile: Profile,
        namespace: str,
        labels: dict[str, str],
        controller: tuple[str, str, str] | None,
        spec: PodSpec,
    ) -> bool:
        """Return whether a pod of which this is all that matters has this plan."""
        return (
            namespace == self.namespace
            and controller == self.controller
            and labels == self.labels
            and spec == self.spec
            and profile is self.profile
        )


class PlanCache:
    """Finds or makes the plan of a pod.

    Args:
        state: the cluster.
        budget_bytes: about how much memory plans may hold together.
    """

    def __init__(self, state: ClusterState, *, budget_bytes: int = 256 << 20) -> None:
        self._state = state
        self._budget_bytes = budget_bytes
        self._results = RuleResults(state)
        self._plans: OrderedDict[bytes, Plan] = OrderedDict()
        self._probation: OrderedDict[bytes, Plan] = OrderedDict()
        self._remembered: OrderedDict[bytes, None] = OrderedDict()
        self._identities: dict[tuple[int, int, int, str, str], tuple[object, object, object, Plan, bytes]] = {}
        # By identity; the specs are held, so that no address is used again while it is a key here. Those before, and the latest.
        self._earlier_specs: dict[int, object] = {}
        self._recent_specs: dict[int, object] = {}
        # By what its pod is beside requests the last plan that is still kept: the next one is made from it.
        self._kinds: WeakValueDictionary[bytes, Plan] = WeakValueDictionary()
        # The plan that was asked for last among those that have earned a place: pods of one template mostly follow one another.
        self._latest: _Latest | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        self._signing: dict[str, list[Plugin[object]]] = {}

    def time_rules(self, timer: Callable[..., object] | None) -> None:
        """Let a timer call the rules from now on (see `RuleResults`); None: nobody measures."""
        self._results.timer = timer

    def __iter__(self) -> Iterator[Plan]:
        """Iterate over the plans that are kept, the one that was asked last at the end."""
        return iter(self._plans.values())

    def plan_for(self, profile: Profile, pod: Pod) -> Plan:
        """Return the plan of a pod under a profile, compiling it where none is kept."""
        metadata, spec = pod.metadata, pod.spec
        signing = self._signing.get(profile.scheduler_name)
        if signing is None:
            signing = self._signing[profile.scheduler_name] = _signing_plugins(profile)
        labels, owners = metadata.labels, metadata.owner_references
        identity = (id(spec), id(labels), id(owners), metadata.namespace, profile.scheduler_name)
        signs = [sign for plugin in signing if (sign := plugin.sign_pod(pod)) is not None] if signing else ()
        if not signs:
            known = self._identities.get(identity)
            # The entry holds what its key is made of, so that no address is reused while it is here.
            if known is not None:
                self._plans.move_to_end(known[4])
                return known[3]
        controller = _controller_of(owners)
        latest = self._latest
        if not signs and latest is not None and latest.serves(profile, metadata.namespace, labels, controller, spec):
            self._plans.move_to_end(latest.signature)
            return latest.plan
        signature = self._encode((profile.scheduler_name, metadata.namespace, labels, controller, spec))
        if signs:
            signature += self._encode([(plugin.name, repr(plugin.sign_pod(pod))) for plugin in signing])
        plan = self._find(signature, profile, pod)
        shared = not signs and self._is_shared(spec)
        if signs or signature not in self._plans:
            return plan
        self._latest = _Latest(profile, metadata.namespace, labels, controller, spec, plan, signature)
        if shared:
            if len(self._identities) >= IDENTITIES:
                self._identities.clear()
            self._identities[identity] = (spec, labels, owners, plan, signature)
        return plan

    def _is_shared(self, spec: object) -> bool:
        """Return whether a spec has come lately; pods of one workload or trace share theirs, pods parsed one by one don't."""
        recent = self._recent_specs
        if id(spec) in recent or id(spec) in self._earlier_specs:
            return True
        if len(recent) >= RECENT_SPECS:
            self._earlier_specs, self._recent_specs = recent, {}
        self._recent_specs[id(spec)] = spec
        return False

    def _find(self, signature: bytes, profile: Profile, pod: Pod) -> Plan:
        plan = self._plans.get(signature)
        if plan is not None:
            self._plans.move_to_end(signature)
            return plan
        plan = self._probation.pop(signature, None)
        if plan is None:
            plan = self._compile(profile, pod)
            if signature not in self._remembered:
                self._remembered[signature] = None
                if len(self._remembered) > REMEMBERED:
                    self._remembered.popitem(last=False)
                self._probation[signature] = plan
                if len(self._probation) > PROBATION:
                    self._probation.popitem(last=False)
                return plan
        self._plans[signature] = plan
        room = max(self._budget_bytes // (BYTES_PER_ROW * max(self._state.nodes.capacity, 1)), 8)
        while len(self._plans) > room:
            self._forget(self._plans.popitem(last=False)[1])
        return plan

    def _compile(self, profile: Profile, pod: Pod) -> Plan:
        metadata = pod.metadata
        controller = _controller_of(metadata.owner_references)
        kind = self._encode(
            (profile.scheduler_name, metadata.namespace, metadata.labels, controller, _without_requests(pod.spec))
        )
        akin = self._kinds.get(kind)
        specs = None
        if akin is not None:
            specs = akin.specs.copy()
            for plugin in profile.compiling_requests:
                del specs[plugin.name]
        plan = self._kinds[kind] = Plan(profile, pod, self._state, self._results, specs)
        return plan

    def _forget(self, plan: Plan) -> None:
        if self._latest is not None and self._latest.plan is plan:
            self._latest = None
        gone = [identity for identity, entry in self._identities.items() if entry[3] is plan]
        for identity in gone:
            del self._identities[identity]


def _signing_plugins(profile: Profile) -> list[Plugin[object]]:
    """Return the plugins whose specs depend on more of a pod than its labels, owner and spec."""
    return [plugin for plugin in profile.plugins.values() if type(plugin).sign_pod is not Plugin.sign_pod]


def _controller_of(owners: tuple[OwnerReference, ...]) -> tuple[str, str, str] | None:
    for owner in owners:
        if owner.controller:
            return (owner.api_version, owner.kind, owner.name)
    return None


def _without_requests(spec: PodSpec) -> PodSpec:
    """Return a spec whose containers request nothing; those that use claims are left as they are."""

    def bare(container: Container) -> Container:
        return container if container.resources.claims else structs.replace(container, resources=NO_RESOURCES)

    containers, init_containers = tuple(map(bare, spec.containers)), tuple(map(bare, spec.init_containers))
    return structs.replace(spec, containers=containers, init_containers=init_containers)
