"""Defaults of the versioned types, which the API server sets before it processes an object.

OpenAPI declares few of them, so this module lists them: constants for each type, and functions for defaults that
depend on other values. The types within a kind are determined once from their shapes, and branches without defaults are
skipped.

Source: the API reference of the release (https://kubernetes.io/docs/reference/kubernetes-api/) and recorded responses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from bayplan.apiserver.codec.shape import Shape, shape_of, zero_value
from bayplan.apiserver.kinds import default_functions as functions
from bayplan.apiserver.schema.facts import api_facts
from bayplan.base.plain_data import Document
from bayplan.objects.workloads import DEFAULT_REVISION_HISTORY_LIMIT

_CORE = "io.k8s.api.core.v1."
_APPS = "io.k8s.api.apps.v1."
_BATCH = "io.k8s.api.batch.v1."
_STORAGE = "io.k8s.api.storage.v1."
_NETWORKING = "io.k8s.api.networking.v1."
_RBAC = "io.k8s.api.rbac.v1."
_ADMISSION = "io.k8s.api.admissionregistration.v1."
_RESOURCE = "io.k8s.api.resource.v1."
_FLOWS = "io.k8s.api.flowcontrol.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_AGGREGATION = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."

_CONTAINER: Document = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_HISTORY: Document = {"revisionHistoryLimit": DEFAULT_REVISION_HISTORY_LIMIT}

CONSTANTS: dict[str, Document] = {
    _CORE + "PodSpec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    },
    _CORE + "Container": _CONTAINER,
    _CORE + "EphemeralContainer": _CONTAINER,
    _CORE + "ContainerPort": {"protocol": "TCP"},
    _CORE + "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    _CORE + "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    _CORE + "GRPCAction": {"service": ""},
    _CORE + "FileKeySelector": {"optional": False},
    _CORE + "ObjectFieldSelector": {"apiVersion": "v1"},
    _CORE + "SecretVolumeSource": {"defaultMode": 420},
    _CORE + "ConfigMapVolumeSource": {"defaultMode": 420},
    _CORE + "DownwardAPIVolumeSource": {"defaultMode": 420},
    _CORE + "ProjectedVolumeSource": {"defaultMode": 420},
    _CORE + "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    _CORE + "HostPathVolumeSource": {"type": ""},
    _CORE + "ISCSIVolumeSource": {"iscsiInterface": "default"},
    _CORE + "ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    _CORE + "RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    _CORE + "RBDPersistentVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    _CORE + "AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False,
    },
    _CORE + "ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    _CORE + "ScaleIOPersistentVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    _CORE + "ServicePort": {"protocol": "TCP"},
    _CORE + "EndpointPort": {"protocol": "TCP"},
    _CORE + "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    _CORE + "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    _CORE + "PersistentVolumeStatus": {"phase": "Pending"},
    _CORE + "PersistentVolumeClaimStatus": {"phase": "Pending"},
    _CORE + "Secret": {"type": "Opaque"},
    _CORE + "NamespaceStatus": {"phase": "Active"},
    _CORE + "ReplicationControllerSpec": {"replicas": 1},
    _APPS + "DeploymentSpec": {"replicas": 1, "progressDeadlineSeconds": 600, **_HISTORY},
    _APPS + "ReplicaSetSpec": {"replicas": 1},
    _APPS + "StatefulSetSpec": {"replicas": 1, "podManagementPolicy": "OrderedReady", **_HISTORY},
    _APPS + "DaemonSetSpec": _HISTORY,
    _BATCH + "CronJobSpec": {
        "concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
    },
    _STORAGE + "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    _STORAGE + "CSIDriverSpec": {
        "attachRequired": True, "podInfoOnMount": False, "storageCapacity": False, "requiresRepublish": False,
        "seLinuxMount": False, "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
    },
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    _FLOWS + "FlowSchemaSpec": {"matchingPrecedence": 1000},
    _FLOWS + "ExemptPriorityLevelConfiguration": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    _FLOWS + "LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
    _FLOWS + "QueuingConfiguration": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
    _BATCH + "PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    _EXTENSIONS + "CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    _EXTENSIONS + "ServiceReference": {"port": 443},
    _AGGREGATION + "ServiceReference": {"port": 443},
    "io.k8s.api.discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    _NETWORKING + "NetworkPolicyPort": {"protocol": "TCP"},
    _NETWORKING + "IngressClassParametersReference": {"scope": "Cluster"},
    _RBAC + "RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    _RESOURCE + "ExactDeviceRequest": {"allocationMode": "ExactCount"},
    _RESOURCE + "DeviceToleration": {"operator": "Equal"},
    _RESOURCE + "DeviceSubRequest": {"allocationMode": "ExactCount"},
    _ADMISSION + "ServiceReference": {"port": 443},
    _ADMISSION + "ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    _ADMISSION + "MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    _ADMISSION + "MatchResources": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}},
    _ADMISSION + "Rule": {"scope": "*"},
    _ADMISSION + "RuleWithOperations": {"scope": "*"},
    _ADMISSION + "NamedRuleWithOperations": {"scope": "*"},
    _ADMISSION + "ValidatingWebhook": {
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "timeoutSeconds": 10,
    },
    _ADMISSION + "MutatingWebhook": {
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "timeoutSeconds": 10, "reinvocationPolicy": "Never",
    },
}  # fmt: skip
"""By type: the values of fields that are absent, null, or (unless the field is a pointer) Go's zero value."""

FUNCTIONS: dict[str, Callable[[Document], None]] = {
    _CORE + "Pod": functions.default_pod,
    _CORE + "PodSpec": functions.default_pod_spec,
    _CORE + "Container": functions.default_image_pull_policy,
    _CORE + "EphemeralContainer": functions.default_image_pull_policy,
    _CORE + "ImageVolumeSource": functions.default_image_volume,
    _CORE + "Volume": functions.default_volume,
    _CORE + "Namespace": functions.default_namespace,
    _CORE + "NodeSpec": functions.default_node_spec,
    _CORE + "NodeStatus": functions.default_node_status,
    _CORE + "ServiceSpec": functions.default_service,
    _CORE + "Service": functions.default_service_object,
    _CORE + "ReplicationController": functions.default_replication_controller,
    _CORE + "LimitRangeItem": functions.default_limit_range_item,
    _APPS + "Deployment": functions.default_deployment,
    _APPS + "StatefulSetSpec": functions.default_stateful_set,
    _APPS + "DaemonSet": functions.default_daemon_set_object,
    _APPS + "DaemonSetSpec": functions.default_daemon_set,
    _EXTENSIONS + "CustomResourceDefinition": functions.default_definition,
    _EXTENSIONS + "CustomResourceDefinitionSpec": functions.default_definition_spec,
    _BATCH + "Job": functions.default_job,
    _NETWORKING + "NetworkPolicySpec": functions.default_network_policy,
    _RBAC + "Subject": functions.default_subject,
    _RESOURCE + "ExactDeviceRequest": functions.default_device_count,
    _RESOURCE + "DeviceSubRequest": functions.default_device_count,
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": functions.default_autoscaler,
}
"""By type: the function that sets defaults that depend on other values. It runs after the constants are set."""


class _Plan:
    """The defaults of a type and of the types within it; branches without defaults are omitted."""

    def __init__(self, type_name: str) -> None:
        zeros = {facts.name: zero_value(facts) for facts in api_facts().types.get(type_name, ())}
        constants = CONSTANTS.get(type_name, {})
        self.constants = tuple((name, value, zeros.get(name)) for name, value in constants.items())
        self.function = FUNCTIONS.get(type_name)
        self.children: dict[str, tuple[tuple[str, ...], _Plan]] = {}

    def apply(self, document: Document) -> None:
        for name, value, zero in self.constants:
            found = document.get(name)
            if found is None or found == zero:
                document[name] = value if not isinstance(value, dict | list) else value.copy()
        if self.function is not None:
            self.function(document)
        children = self.children
        for name, item in document.items():
            child = children.get(name)
            if child is not None:
                containers, plan = child
                _apply_inside(plan, item, containers)


def _apply_inside(plan: _Plan, value: object, containers: tuple[str, ...]) -> None:
    if not containers:
        if isinstance(value, dict):
            plan.apply(value)
    elif isinstance(value, list):
        for item in value:
            _apply_inside(plan, item, containers[1:])
    elif isinstance(value, dict):
        for item in value.values():
            _apply_inside(plan, item, containers[1:])


def apply_defaults(type_name: str, document: Document) -> None:
    """Set the defaults of an object in place.

    Args:
        type_name: the name of the object's type in OpenAPI.
        document: the object as returned by its shape.
    """
    plan = _plan(type_name)
    if plan is not None:
        plan.apply(document)


@cache
def _plan(type_name: str) -> _Plan | None:
    return _make(shape_of(type_name), ())


def _make(shape: Shape, above: tuple[str, ...]) -> _Plan | None:
    """Return the defaults of a type, or None if it has none. Inside itself, a recursive type gets no defaults."""
    if shape.type_name in above:
        return None
    plan = _Plan(shape.type_name)
    above = (*above, shape.type_name)
    for name, field in shape.fields.items():
        inner = _make(field.inner, above) if field.inner is not None else None
        if inner is not None and name == "inlineVolumeSpec":
            inner.constants = ()  # An inline spec only gets the defaults of its volume source.
        if inner is not None:
            plan.children[name] = (field.containers, inner)
    return plan if plan.constants or plan.function or plan.children else None
