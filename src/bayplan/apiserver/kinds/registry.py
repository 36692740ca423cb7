"""The strategy of each resource, by table."""

from __future__ import annotations

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds import core_kinds, policy_kinds, workload_kinds
from bayplan.apiserver.kinds.api_services import ApiServiceStrategy
from bayplan.apiserver.kinds.custom_resources import CustomStrategy, DefinitionStrategy
from bayplan.apiserver.kinds.device_kinds import DeviceSliceStrategy, DeviceStrategy
from bayplan.apiserver.kinds.pods import PodStrategy
from bayplan.apiserver.kinds.strategy import Context, Strategy, add_finalizer, copy_part, raise_generation
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.model.users import ADMIN
from bayplan.base.plain_data import Document, part, parts


class _Plain(Strategy):
    """A kind without special rules, configured by attributes of `Strategy`, and by two further arguments.

    Args:
        finalizer: the protection finalizer of new objects, or empty.
        labels_count: whether changes of labels increment the generation.
    """

    def __init__(
        self,
        *,
        counts_generations: bool = False,
        returns_deleted: bool = False,
        create_on_update: bool = False,
        unconditional_update: bool = True,
        generation_fields: tuple[str, ...] = ("spec",),
        name_check: str = "subdomain",
        keeps_metadata_of_status: bool = False,
        finalizer: str = "",
        labels_count: bool = False,
        empties_count: bool = False,
        created_by_applied_status: bool = False,
    ) -> None:
        self.counts_generations = counts_generations
        self.returns_deleted = returns_deleted
        self.create_on_update = create_on_update
        self.unconditional_update = unconditional_update
        self.generation_fields = generation_fields
        self.name_check = name_check
        self.keeps_metadata_of_status = keeps_metadata_of_status
        self._finalizer = finalizer
        self._labels_count = labels_count
        self.empties_count = empties_count
        self.created_by_applied_status = created_by_applied_status

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and increment the generation if the labels changed and the kind counts that."""
        super().prepare_update(context, new, old)
        if self._labels_count and part(new, "metadata").get("generation") == part(old, "metadata").get("generation"):
            now, before = (part(each, "metadata", "labels") for each in (new, old))
            if now != before:
                raise_generation(new, old)

    def admit(self, context: Context, document: Document) -> None:
        """Add the protection finalizer, if the kind has one (the plugin StorageObjectInUseProtection)."""
        if self._finalizer:
            add_finalizer(document, self._finalizer)


class SigningRequestStrategy(Strategy):
    """Certificate signing requests: the server records the user who created them, and decisions cannot be changed."""

    name_check = "any"

    def prepare_create(self, context: Context, document: Document) -> None:
        """Record the user of the request in the spec."""
        super().prepare_create(context, document)
        spec = part(document, "spec")
        document["spec"] = spec
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
        spec |= (context.user or ADMIN).document()

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the spec, which is immutable."""
        super().prepare_update(context, new, old)
        copy_part(new, old, "spec")

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore the fields that the endpoint must not change, and set the times of conditions.

        The subresource `approval` changes only conditions. The subresource `status` changes the status except for
        decisions (the conditions Approved and Denied).
        """
        copy_part(new, old, "spec")
        status, before = part(new, "status"), part(old, "status")
        conditions = [dict(each) for each in parts(status, "conditions")]
        if context.subresource == "status":
            for kind in _DECISIONS:
                _keep_decision(conditions, parts(before, "conditions"), kind)
        else:
            status = dict(before)
        for condition in conditions:
            _date(condition, parts(before, "conditions"), context.cluster.now())
        if conditions:
            status = {**status, "conditions": conditions}
        elif context.subresource != "status":
            status.pop("conditions", None)
        new["status"] = status

    def reset_fields(self, resource: Resource, subresource: str) -> Node:
        """Return the fields that cannot be owned through the endpoint, which always include the spec."""
        spec: Node = {"f:spec": {}}
        if subresource == "status":
            return {**spec, "f:status": {"f:conditions": {}}}
        return {**spec, "f:status": {"f:certificate": {}} if subresource else {}}


_DECISIONS = ("Approved", "Denied")


def _keep_decision(conditions: list[Document], before: list[Document], kind: str) -> None:
    """Restore decisions of this type that were changed. Validation rejects decisions that were added or removed."""
    known = [each for each in before if each.get("type") == kind]
    places = [place for place, each in enumerate(conditions) if each.get("type") == kind]
    if len(known) == len(places):
        for place, each in zip(places, known, strict=True):
            conditions[place] = dict(each)


def _date(condition: Document, before: list[Document], now: str) -> None:
    """Set missing times of a condition; the transition time of an unchanged condition stays."""
    condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
    if not condition.get("lastTransitionTime"):
        same = [each for each in before if all(each.get(name) == condition.get(name) for name in ("type", "status"))]
        known = next((each["lastTransitionTime"] for each in same if each.get("lastTransitionTime")), now)
        condition["lastTransitionTime"] = known


_DEFAULT = _Plain()
_CUSTOM = CustomStrategy()
_RETURNED = _Plain(returns_deleted=True)
_COUNTED = _Plain(counts_generations=True)
_ROLE = _Plain(create_on_update=True, name_check="path")
_HOOKS = _Plain(
    counts_generations=True, unconditional_update=False, generation_fields=("webhooks",), empties_count=True
)
_POLICY = _Plain(counts_generations=True, unconditional_update=False)

_STRATEGIES: dict[str, Strategy] = {
    "pods": PodStrategy(),
    "nodes": core_kinds.NodeStrategy(),
    "namespaces": core_kinds.NamespaceStrategy(),
    "services": core_kinds.ServiceStrategy(),
    "persistentvolumes": core_kinds.VolumeStrategy(),
    "persistentvolumeclaims": core_kinds.ClaimStrategy(),
    "events": core_kinds.EventStrategy(),
    "serviceaccounts": core_kinds.ServiceAccountStrategy(),
    "resourcequotas": _RETURNED,
    "podtemplates": _Plain(counts_generations=True, returns_deleted=True, generation_fields=("template",)),
    "limitranges": core_kinds.LimitRangeStrategy(),
    "endpoints": _Plain(create_on_update=True),
    "replicationcontrollers": workload_kinds.ControllerStrategy(),
    "apps/deployments": workload_kinds.DeploymentStrategy(),
    "apps/replicasets": workload_kinds.WorkloadStrategy(),
    "apps/statefulsets": workload_kinds.WorkloadStrategy("label"),
    "apps/daemonsets": workload_kinds.DaemonSetStrategy(),
    "batch/jobs": workload_kinds.JobStrategy(),
    "batch/cronjobs": workload_kinds.WorkloadStrategy(),
    "policy/poddisruptionbudgets": policy_kinds.BudgetStrategy(),
    "scheduling.k8s.io/priorityclasses": policy_kinds.PriorityClassStrategy(),
    "storage.k8s.io/storageclasses": policy_kinds.StorageClassStrategy(),
    "storage.k8s.io/csinodes": _Plain(returns_deleted=True, unconditional_update=False),
    "storage.k8s.io/csidrivers": policy_kinds.DriverStrategy(),
    "storage.k8s.io/volumeattachments": _Plain(
        returns_deleted=True, unconditional_update=False, keeps_metadata_of_status=True
    ),
    "storage.k8s.io/csistoragecapacities": _Plain(unconditional_update=False),
    "storage.k8s.io/volumeattributesclasses": _Plain(returns_deleted=True, finalizer="kubernetes.io/vac-protection"),
    "coordination.k8s.io/leases": core_kinds.LeaseStrategy(),
    "node.k8s.io/runtimeclasses": _Plain(create_on_update=True, unconditional_update=False),
    "rbac.authorization.k8s.io/roles": _ROLE,
    "rbac.authorization.k8s.io/rolebindings": _ROLE,
    "rbac.authorization.k8s.io/clusterroles": _ROLE,
    "rbac.authorization.k8s.io/clusterrolebindings": _ROLE,
    "networking.k8s.io/ingresses": core_kinds.IngressStrategy(),
    "networking.k8s.io/ingressclasses": _COUNTED,
    "networking.k8s.io/networkpolicies": _Plain(counts_generations=True, empties_count=True),
    "networking.k8s.io/ipaddresses": _Plain(name_check="address"),
    "networking.k8s.io/servicecidrs": _Plain(keeps_metadata_of_status=True),
    "discovery.k8s.io/endpointslices": core_kinds.EndpointSliceStrategy(),
    "resource.k8s.io/resourceclaims": DeviceStrategy(),
    "resource.k8s.io/resourceclaimtemplates": DeviceStrategy(),
    "resource.k8s.io/resourceslices": DeviceSliceStrategy(),
    "resource.k8s.io/deviceclasses": DeviceStrategy(counts_generations=True, name_check="class"),
    "flowcontrol.apiserver.k8s.io/flowschemas": _Plain(counts_generations=True, keeps_metadata_of_status=True),
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": _Plain(
        counts_generations=True, keeps_metadata_of_status=True
    ),
    "certificates.k8s.io/certificatesigningrequests": SigningRequestStrategy(),
    "apiextensions.k8s.io/customresourcedefinitions": DefinitionStrategy(),
    "apiregistration.k8s.io/apiservices": ApiServiceStrategy(),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _HOOKS,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _HOOKS,
    "admissionregistration.k8s.io/validatingadmissionpolicies": _Plain(
        counts_generations=True,
        unconditional_update=False,
        keeps_metadata_of_status=True,
        created_by_applied_status=True,
    ),
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _POLICY,
    "admissionregistration.k8s.io/mutatingadmissionpolicies": _POLICY,
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings": _POLICY,
}


def strategy_of(table: str, *, custom: bool = False) -> Strategy:
    """Return the strategy of a table; `custom`: whether it contains custom resources.

    Kinds without special rules share one strategy.
    """
    return _CUSTOM if custom else _STRATEGIES.get(table, _DEFAULT)
