"""Which strategy a resource has, by its table."""

from __future__ import annotations

from bayplan.apiserver.kinds import core_kinds, event_kinds, policy_kinds, workload_kinds
from bayplan.apiserver.kinds.custom_kinds import CustomStrategy
from bayplan.apiserver.kinds.definition_kinds import DefinitionStrategy
from bayplan.apiserver.kinds.device_kinds import DeviceStrategy
from bayplan.apiserver.kinds.pods import PodStrategy
from bayplan.apiserver.kinds.strategy import Strategy


class _Plain(Strategy):
    """A kind of which only facts matter here."""

    def __init__(
        self,
        *,
        counts_generations: bool = False,
        returns_deleted: bool = False,
        create_on_update: bool = False,
        unconditional_update: bool = True,
        generation_fields: tuple[str, ...] = ("spec",),
        name_check: str = "subdomain",
    ) -> None:
        self.counts_generations = counts_generations
        self.returns_deleted = returns_deleted
        self.create_on_update = create_on_update
        self.unconditional_update = unconditional_update
        self.generation_fields = generation_fields
        self.name_check = name_check


_DEFAULT = _Plain()
_CUSTOM = CustomStrategy()
_RETURNED = _Plain(returns_deleted=True)
_COUNTED = _Plain(counts_generations=True)
_ROLE = _Plain(create_on_update=True, name_check="path")
_HOOKS = _Plain(counts_generations=True, unconditional_update=False, generation_fields=("webhooks",))
_POLICY = _Plain(counts_generations=True, unconditional_update=False)

_STRATEGIES: dict[str, Strategy] = {
    "pods": PodStrategy(),
    "nodes": core_kinds.NodeStrategy(),
    "namespaces": core_kinds.NamespaceStrategy(),
    "services": core_kinds.ServiceStrategy(),
    "persistentvolumes": core_kinds.VolumeStrategy(),
    "persistentvolumeclaims": core_kinds.ClaimStrategy(),
    "events": event_kinds.EventStrategy(),
    "serviceaccounts": _RETURNED,
    "resourcequotas": _RETURNED,
    "podtemplates": _Plain(counts_generations=True, returns_deleted=True, generation_fields=("template",)),
    "limitranges": _Plain(create_on_update=True),
    "endpoints": _Plain(create_on_update=True),
    "replicationcontrollers": workload_kinds.ControllerStrategy(),
    "apps/deployments": workload_kinds.DeploymentStrategy(),
    "apps/replicasets": workload_kinds.WorkloadStrategy(),
    "apps/statefulsets": workload_kinds.WorkloadStrategy(),
    "apps/daemonsets": workload_kinds.DaemonSetStrategy(),
    "batch/jobs": workload_kinds.JobStrategy(),
    "batch/cronjobs": workload_kinds.CronJobStrategy(),
    "policy/poddisruptionbudgets": policy_kinds.BudgetStrategy(),
    "scheduling.k8s.io/priorityclasses": policy_kinds.PriorityClassStrategy(),
    "storage.k8s.io/storageclasses": policy_kinds.StorageClassStrategy(),
    "storage.k8s.io/csinodes": _Plain(returns_deleted=True, unconditional_update=False),
    "storage.k8s.io/csidrivers": _Plain(returns_deleted=True, unconditional_update=False),
    "storage.k8s.io/volumeattachments": _Plain(returns_deleted=True, unconditional_update=False),
    "storage.k8s.io/csistoragecapacities": _Plain(unconditional_update=False),
    "storage.k8s.io/volumeattributesclasses": _RETURNED,
    "coordination.k8s.io/leases": event_kinds.LeaseStrategy(),
    "node.k8s.io/runtimeclasses": _Plain(create_on_update=True, unconditional_update=False),
    "rbac.authorization.k8s.io/roles": _ROLE,
    "rbac.authorization.k8s.io/rolebindings": _ROLE,
    "rbac.authorization.k8s.io/clusterroles": _ROLE,
    "rbac.authorization.k8s.io/clusterrolebindings": _ROLE,
    "networking.k8s.io/ingresses": _COUNTED,
    "networking.k8s.io/ingressclasses": _COUNTED,
    "networking.k8s.io/networkpolicies": _COUNTED,
    "discovery.k8s.io/endpointslices": _Plain(counts_generations=True, generation_fields=("endpoints", "ports")),
    "resource.k8s.io/resourceclaims": DeviceStrategy(),
    "resource.k8s.io/resourceclaimtemplates": DeviceStrategy(),
    "resource.k8s.io/resourceslices": _Plain(counts_generations=True, returns_deleted=True),
    "resource.k8s.io/deviceclasses": DeviceStrategy(counts_generations=True),
    "flowcontrol.apiserver.k8s.io/flowschemas": _COUNTED,
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": _COUNTED,
    "apiextensions.k8s.io/customresourcedefinitions": DefinitionStrategy(),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _HOOKS,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _HOOKS,
    "admissionregistration.k8s.io/validatingadmissionpolicies": _POLICY,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _POLICY,
    "admissionregistration.k8s.io/mutatingadmissionpolicies": _POLICY,
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings": _POLICY,
}


def strategy_of(table: str, *, custom: bool = False) -> Strategy:
    """Return the strategy of a resource; kinds without rules of their own share one."""
    return _CUSTOM if custom else _STRATEGIES.get(table, _DEFAULT)
