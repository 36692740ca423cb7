"""Plans by pod signature, cached within a memory budget.

A signature contains all that plugins may read of a pod. Pods of one kind differ only in requests, claims and volumes;
their plans share the specs of all other plugins.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from weakref import WeakValueDictionary

import msgspec
from msgspec import structs

from bayplan.engine.plan import Plan
from bayplan.engine.rule_result import RuleResults
from bayplan.framework.plugin import Plugin
from bayplan.framework.profile import Profile
from bayplan.objects.pod import Pod, PodSpec, ResourceRequirements
from bayplan.state.cluster_state import ClusterState

BYTES_PER_PLAN = 32 << 10
BYTES_PER_ROW = 48
"""Approximate size of a plan and the results that only it needs: a fixed part, and a part per row."""

MAX_PROBATION = 64
"""Maximum number of plans on probation: their signature occurred only once, so they must not evict the plans of templates.

A pod of the same kind adapts such a plan, or shares its specs. In large clusters their limit is an eighth of the budget.
"""

MAX_REMEMBERED = 8192
"""Number of signatures that outlive their plans. If one of them occurs again, its plan is cached."""

NO_RESOURCES = ResourceRequirements()


class PlanCache:
    """Finds or compiles the plan of a pod.

    `budget_bytes` is the approximate limit of the memory of cached plans; those on probation take an eighth more.

    Attributes:
        adapted: how many times an earlier plan of the same kind was changed instead of compiling a new one, because no
            second pod had its signature; for measurements.
        results: the results of rules that the plans share.
    """

    def __init__(self, state: ClusterState, *, budget_bytes: int = 1 << 30) -> None:
        self.adapted = 0
        self._state = state
        self._budget_bytes = budget_bytes
        self.results = RuleResults(state)
        # The most recently used plan is the last one.
        self._plans: dict[bytes, Plan] = {}
        self._probation: OrderedDict[bytes, Plan] = OrderedDict()
        self._remembered: OrderedDict[bytes, None] = OrderedDict()
        # By kind, the latest plan that is still referenced.
        self._kinds: WeakValueDictionary[bytes, Plan] = WeakValueDictionary()
        self._encode = msgspec.msgpack.Encoder().encode

    def __iter__(self) -> Iterator[Plan]:
        """Iterate over the cached plans, the most recently used one last."""
        return iter(self._plans.values())

    def plan_for(self, profile: Profile, pod: Pod) -> Plan:
        """Return the plan of a pod under a profile, and compile it if it is not cached."""
        signature = self._encode((_identity(profile, pod), pod.spec))
        plan = self._plans.get(signature)
        if plan is not None:
            for plugin in plan.signing:
                if plugin.sign_pod(pod) is not None:
                    break
            else:
                del self._plans[signature]
                self._plans[signature] = plan
                return plan
        return self._find(signature, profile, pod)

    def promote(self, plan: Plan) -> None:
        """Move a plan from probation to the cache: the caller stores it, so it must not be adapted to another pod."""
        if self._probation.get(plan.signature) is plan:
            self._plans[plan.signature] = self._probation.pop(plan.signature)
            plan.share_results()

    def _find(self, signature: bytes, profile: Profile, pod: Pod) -> Plan:
        """Return a plan that was not found directly: plugins sign more of the pod, or its signature is rare."""
        signing = tuple([plugin for plugin in profile.signing if plugin.signs(pod.spec)])
        signs = [plugin.sign_pod(pod) for plugin in signing]
        signed = any(sign is not None for sign in signs)
        if signed:
            signature += self._encode([(plugin.name, repr(sign)) for plugin, sign in zip(signing, signs, strict=True)])
        plan = self._plans.pop(signature, None)
        if plan is not None:
            self._plans[signature] = plan
            return plan
        plan = self._probation.pop(signature, None)
        if plan is None:
            plan = self._compile(profile, pod, signing, signed)
            if signature not in self._remembered:
                self._remembered[signature] = None
                if len(self._remembered) > MAX_REMEMBERED:
                    self._remembered.popitem(last=False)
                self._probation[signature] = plan
                plan.signature = signature
                # The cluster may have grown, so that several plans are too many now.
                while len(self._probation) > min(MAX_PROBATION, max(self._max_plans() // 8, 4)):
                    self._probation.popitem(last=False)
                return plan
        self._plans[signature] = plan
        plan.share_results()
        while len(self._plans) > self._max_plans():
            del self._plans[next(iter(self._plans))]
        return plan

    def _max_plans(self) -> int:
        """Return the number of plans that the budget allows, at least 8."""
        return max(self._budget_bytes // (BYTES_PER_PLAN + BYTES_PER_ROW * self._state.nodes.capacity), 8)

    def _compile(self, profile: Profile, pod: Pod, signing: tuple[Plugin[object], ...], signed: bool) -> Plan:
        """Compile a plan that shares specs with the latest plan of the same kind, or adapt that plan to the pod."""
        kind = self._encode((_identity(profile, pod), _kind_of(pod.spec)))
        # If a plugin raises while a plan is adapted, the plan must not be found again.
        akin = self._kinds.pop(kind, None)
        if akin is None:
            plan = Plan(profile, pod, self._state, self.results)
        else:
            stale, keeps_footprint = _stale_plugins(akin, pod, signing, signed)
            if self._probation.get(akin.signature) is akin:
                # No other pod had its signature: adapt the plan itself.
                del self._probation[akin.signature]
                self.adapted += 1
                akin.adapt(pod, stale, keeps_footprint)
                plan = akin
            else:
                specs = {name: spec for name, spec in akin.specs.items() if name not in stale}
                plan = Plan(profile, pod, self._state, self.results, specs)
        plan.signing, plan.signed = signing, signed
        self._kinds[kind] = plan
        return plan


def _identity(profile: Profile, pod: Pod) -> tuple[object, ...]:
    """Return what plugins may read of a pod in addition to its spec and to what they sign, and the profile's name."""
    metadata = pod.metadata
    owner = metadata.controller() if metadata.owner_references else None
    controller = None if owner is None else (owner.api_version, owner.kind, owner.name)
    return (profile.scheduler_name, metadata.namespace, metadata.labels, controller)


def _kind_of(spec: PodSpec) -> PodSpec:
    """Return a spec without requests, claims and volumes."""
    return structs.replace(
        spec,
        containers=tuple([structs.replace(container, resources=NO_RESOURCES) for container in spec.containers]),
        init_containers=tuple(
            [structs.replace(container, resources=NO_RESOURCES) for container in spec.init_containers]
        ),
        resource_claims=(),
        volumes=(),
    )


def _stale_plugins(
    akin: Plan, pod: Pod, signing: tuple[Plugin[object], ...], signed: bool
) -> tuple[frozenset[str], bool]:
    """Return the plugins whose spec for a pod may differ from that in a plan of the same kind.

    The second result is whether the footprints of both pods are certainly equal.
    """
    profile, spec, other = akin.profile, pod.spec, akin.pod.spec
    stale, keeps_footprint = frozenset[str](), True
    if (
        spec.containers != other.containers
        or spec.init_containers != other.init_containers
        or spec.resource_claims != other.resource_claims
    ):
        stale = profile.compiling_requests
        keeps_footprint = False
    if spec.volumes != other.volumes:
        stale = stale | profile.compiling_volumes
    if signed or akin.signed:
        stale = stale.union([plugin.name for plugin in (*signing, *akin.signing)])
        keeps_footprint = False
    return stale, keeps_footprint
