"""The rows of tables: one function per kind that returns the cells in the order of the columns."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from bayplan.apiserver.tables import control_cells, policy_cells
from bayplan.apiserver.tables.ages import age, human_duration, seconds_of
from bayplan.apiserver.tables.metadata_cells import age_of, name_of
from bayplan.apiserver.tables.pod_cells import pod_cells
from bayplan.base.plain_data import Document, part, parts, texts

_NONE, _UNSET, _UNKNOWN = "<none>", "<unset>", "<unknown>"
_ROLE = "node-role.kubernetes.io/"
_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip

Cells = Callable[[Document, float], list[object]]


def _labels(labels: Document) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or _NONE


def format_selector(selector: Document) -> str:
    """Return a label selector as text, requirements sorted by key; of one key, labels precede expressions."""
    terms = [(key, f"{key}={value}") for key, value in part(selector, "matchLabels").items()]
    for each in parts(selector, "matchExpressions"):
        key, values = str(each.get("key")), ",".join(sorted(texts(each, "values")))
        form = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        terms.append((key, form.get(str(each.get("operator")), f"!{key}")))
    return ",".join(text for _, text in sorted(terms, key=itemgetter(0)))


def _containers(template: Document) -> tuple[str, str]:
    found = parts(part(template, "spec"), "containers")
    return ",".join(str(each.get("name")) for each in found), ",".join(str(each.get("image")) for each in found)


def _node(node: Document, now: float) -> list[object]:
    metadata, status = part(node, "metadata"), part(node, "status")
    ready = next((each for each in reversed(parts(status, "conditions")) if each.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if part(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    labels = part(metadata, "labels")
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(str(labels["kubernetes.io/role"]))
    info = part(status, "nodeInfo")
    kernel = str(info.get("kernelVersion") or _UNKNOWN)
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    addresses = {str(each.get("type")): each.get("address") for each in reversed(parts(status, "addresses"))}
    return [
        name_of(node), ",".join(words), ",".join(sorted(roles)) or _NONE, age_of(node, now),
        info.get("kubeletVersion") or "", addresses.get("InternalIP") or _NONE, addresses.get("ExternalIP") or _NONE,
        info.get("osImage") or _UNKNOWN, kernel, info.get("containerRuntimeVersion") or _UNKNOWN,
    ]  # fmt: skip


def _namespace(item: Document, now: float) -> list[object]:
    return [name_of(item), part(item, "status").get("phase") or "", age_of(item, now)]


def _event(event: Document, now: float) -> list[object]:
    first = age(event.get("firstTimestamp") or event.get("eventTime"), now)
    last = age(event["lastTimestamp"], now) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    series = part(event, "series")
    if series:
        last, count = age(series.get("lastObservedTime"), now), series.get("count", 0)
    involved, source = part(event, "involvedObject"), part(event, "source")
    target = str(involved.get("kind") or "").lower()
    if involved.get("name"):
        target += f"/{involved['name']}"
    component = str(source.get("component") or event.get("reportingComponent") or "")
    host = str(source.get("host") or event.get("reportingInstance") or "")
    return [
        last, event.get("type") or "", event.get("reason") or "", target, involved.get("fieldPath") or "",
        f"{component}, {host}" if host else component, str(event.get("message") or "").strip(), first, count,
        name_of(event),
    ]  # fmt: skip


def _deployment(item: Document, now: float) -> list[object]:
    spec, status = part(item, "spec"), part(item, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    head = [
        name_of(item),
        ready,
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age_of(item, now),
    ]
    return [*head, *_containers(part(spec, "template")), format_selector(part(spec, "selector"))]


def _replica_set(item: Document, now: float) -> list[object]:
    spec, status = part(item, "spec"), part(item, "status")
    selector = part(spec, "selector")
    shown = (
        format_selector(selector) if "matchLabels" in selector or "matchExpressions" in selector else _labels(selector)
    )
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(item), *counts, age_of(item, now), *_containers(part(spec, "template")), shown]


def _stateful_set(item: Document, now: float) -> list[object]:
    spec, status = part(item, "spec"), part(item, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(item), ready, age_of(item, now), *_containers(part(spec, "template"))]


def _daemon_set(item: Document, now: float) -> list[object]:
    spec, status = part(item, "spec"), part(item, "status")
    names = (
        "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
    )  # fmt: skip
    template = part(spec, "template")
    selector = _labels(part(template, "spec", "nodeSelector"))
    counts = [status.get(name, 0) for name in names]
    shown = format_selector(part(spec, "selector")) or _NONE
    return [name_of(item), *counts, selector, age_of(item, now), *_containers(template), shown]


def _job(item: Document, now: float) -> list[object]:
    spec, status = part(item, "spec"), part(item, "status")
    succeeded, parallelism = status.get("succeeded", 0), spec.get("parallelism") or 0
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        completions = (
            f"{succeeded}/1 of {parallelism}" if isinstance(parallelism, int) and parallelism > 1 else f"{succeeded}/1"
        )
    met = [each.get("type") for each in parts(status, "conditions") if each.get("status") == "True"]
    word = "Complete" if "Complete" in met else "Failed" if "Failed" in met else ""
    if not word:
        deleted = part(item, "metadata").get("deletionTimestamp")
        rest = [each for each in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if each in met]
        word = "Terminating" if deleted else rest[0] if rest else "Running"
    duration = ""
    if status.get("startTime"):
        ended = status.get("completionTime")
        until = seconds_of(str(ended)) if ended else now
        duration = human_duration(until - seconds_of(str(status["startTime"])))
    shown = format_selector(part(spec, "selector")) if "selector" in spec else _NONE
    return [name_of(item), word, completions, duration, age_of(item, now), *_containers(part(spec, "template")), shown]


def _cron_job(item: Document, now: float) -> list[object]:
    spec, status = part(item, "spec"), part(item, "status")
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else _NONE
    suspended = _UNSET if spec.get("suspend") is None else str(bool(spec["suspend"]))
    head = [name_of(item), spec.get("schedule"), spec.get("timeZone") or _NONE, suspended]
    job = part(spec, "jobTemplate", "spec")
    shown = format_selector(part(job, "selector")) if "selector" in job else _NONE
    active = len(parts(status, "active"))
    return [*head, active, last, age_of(item, now), *_containers(part(job, "template")), shown]


def _service(item: Document, now: float) -> list[object]:
    spec = part(item, "spec")
    addresses = texts(spec, "clusterIPs")
    ports = []
    for port in parts(spec, "ports"):
        middle = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{middle}/{port.get('protocol')}")
    return [
        name_of(item), spec.get("type") or "", addresses[0] if addresses else _NONE, _external_address(item, spec),
        ",".join(ports) or _NONE, age_of(item, now), _labels(part(spec, "selector")),
    ]  # fmt: skip


def _external_address(item: Document, spec: Document) -> str:
    external, kind = texts(spec, "externalIPs"), spec.get("type")
    if kind == "ExternalName":
        return str(spec.get("externalName") or "")
    if kind == "LoadBalancer":
        ingress = parts(part(item, "status", "loadBalancer"), "ingress")
        external = (
            sorted({str(found) for each in ingress if (found := each.get("ip") or each.get("hostname"))}) + external
        )
        return ",".join(external) or "<pending>"
    return ",".join(external) or _NONE if kind in ("ClusterIP", "NodePort") else _UNKNOWN


def _volume(item: Document, now: float) -> list[object]:
    metadata, spec, status = part(item, "metadata"), part(item, "spec"), part(item, "status")
    claim = part(spec, "claimRef")
    shown = f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else ""
    annotated = part(metadata, "annotations").get("volume.beta.kubernetes.io/storage-class")
    return [
        name_of(item), part(spec, "capacity").get("storage", "0"), _modes(spec),
        spec.get("persistentVolumeReclaimPolicy") or "", _phase(item), shown,
        annotated or spec.get("storageClassName") or "", spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason") or "", age_of(item, now), spec.get("volumeMode") or _UNSET,
    ]  # fmt: skip


def _modes(owner: Document) -> str:
    modes = texts(owner, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(item: Document) -> object:
    if part(item, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return part(item, "status").get("phase") or ""


def _claim(item: Document, now: float) -> list[object]:
    metadata, spec, status = part(item, "metadata"), part(item, "spec"), part(item, "status")
    bound = spec.get("volumeName")
    annotated = part(metadata, "annotations").get("volume.beta.kubernetes.io/storage-class")
    return [
        name_of(item), _phase(item), bound or "", part(status, "capacity").get("storage", "0") if bound else "",
        _modes(status) if bound else "", annotated or spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName", _UNSET), age_of(item, now), spec.get("volumeMode") or _UNSET,
    ]  # fmt: skip


def _storage_class(item: Document, now: float) -> list[object]:
    annotations = part(item, "metadata", "annotations")
    name = str(name_of(item))
    if annotations.get("storageclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    mode, expands = item.get("volumeBindingMode") or "Immediate", bool(item.get("allowVolumeExpansion"))
    return [name, item.get("provisioner"), item.get("reclaimPolicy") or "Delete", mode, expands, age_of(item, now)]


def _priority_class(item: Document, now: float) -> list[object]:
    default = bool(item.get("globalDefault"))
    return [name_of(item), item.get("value", 0), default, age_of(item, now), item.get("preemptionPolicy") or ""]


def _budget(item: Document, now: float) -> list[object]:
    spec = part(item, "spec")
    limits = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [name_of(item), *limits, part(item, "status").get("disruptionsAllowed", 0), age_of(item, now)]


def _config_map(item: Document, now: float) -> list[object]:
    return [name_of(item), len(part(item, "data")) + len(part(item, "binaryData")), age_of(item, now)]


def _secret(item: Document, now: float) -> list[object]:
    return [name_of(item), item.get("type") or "", len(part(item, "data")), age_of(item, now)]


def _lease(item: Document, now: float) -> list[object]:
    return [name_of(item), part(item, "spec").get("holderIdentity") or "", age_of(item, now)]


def _csi_node(item: Document, now: float) -> list[object]:
    return [name_of(item), len(parts(part(item, "spec"), "drivers")), age_of(item, now)]


def _csi_driver(item: Document, now: float) -> list[object]:
    spec = part(item, "spec")
    flags = [spec.get("attachRequired", True), spec.get("podInfoOnMount", False), spec.get("storageCapacity", False)]
    tokens = ",".join(str(each.get("audience", "")) for each in parts(spec, "tokenRequests"))
    modes = ",".join(texts(spec, "volumeLifecycleModes")) or _NONE
    shown = tokens if "tokenRequests" in spec else _UNSET
    return [name_of(item), *flags, shown, spec.get("requiresRepublish", False), modes, age_of(item, now)]


def _attachment(item: Document, now: float) -> list[object]:
    spec = part(item, "spec")
    source = part(spec, "source").get("persistentVolumeName") or ""
    attached = bool(part(item, "status").get("attached"))
    return [name_of(item), spec.get("attacher"), source, spec.get("nodeName"), attached, age_of(item, now)]


def _resource_claim(item: Document, now: float) -> list[object]:
    status = part(item, "status")
    states = ["deleted"] if part(item, "metadata").get("deletionTimestamp") else []
    states += ["allocated"] if status.get("allocation") else ["pending"] if not states else []
    states += ["reserved"] if status.get("reservedFor") else []
    return [name_of(item), ",".join(states), age_of(item, now)]


def _resource_slice(item: Document, now: float) -> list[object]:
    spec = part(item, "spec")
    return [
        name_of(item),
        spec.get("nodeName") or "",
        spec.get("driver"),
        part(spec, "pool").get("name"),
        age_of(item, now),
    ]


def _network_policy(item: Document, now: float) -> list[object]:
    selector = part(item, "spec", "podSelector")
    return [name_of(item), format_selector(selector) if selector else _NONE, age_of(item, now)]


def named_and_aged(item: Document, now: float) -> list[object]:
    """Return the cells of a kind that shows only name and age."""
    return [name_of(item), age_of(item, now)]


CELLS: dict[str, Cells] = {
    "core.Pod": pod_cells,
    "core.Node": _node,
    "core.Namespace": _namespace,
    "core.Event": _event,
    "core.Service": _service,
    "core.PersistentVolume": _volume,
    "core.PersistentVolumeClaim": _claim,
    "core.ComponentStatus": control_cells.component_status,
    "core.ConfigMap": _config_map,
    "core.Secret": _secret,
    "core.ServiceAccount": named_and_aged,
    "core.ReplicationController": _replica_set,
    "apps.Deployment": _deployment,
    "apps.ReplicaSet": _replica_set,
    "apps.StatefulSet": _stateful_set,
    "apps.DaemonSet": _daemon_set,
    "batch.Job": _job,
    "batch.CronJob": _cron_job,
    "storage.StorageClass": _storage_class,
    "storage.CSINode": _csi_node,
    "storage.CSIDriver": _csi_driver,
    "storage.VolumeAttachment": _attachment,
    "storage.VolumeAttributesClass": policy_cells.attributes_class,
    "scheduling.PriorityClass": _priority_class,
    "policy.PodDisruptionBudget": _budget,
    "core.PodTemplate": policy_cells.pod_template,
    "apps.ControllerRevision": policy_cells.controller_revision,
    "certificates.CertificateSigningRequest": policy_cells.signing_request,
    "flowcontrol.FlowSchema": policy_cells.flow_schema,
    "flowcontrol.PriorityLevelConfiguration": policy_cells.priority_level,
    "admissionregistration.ValidatingAdmissionPolicy": policy_cells.validating_policy,
    "admissionregistration.ValidatingAdmissionPolicyBinding": policy_cells.policy_binding,
    "admissionregistration.MutatingAdmissionPolicy": policy_cells.mutating_policy,
    "admissionregistration.MutatingAdmissionPolicyBinding": policy_cells.policy_binding,
    "coordination.Lease": _lease,
    "resource.ResourceClaim": _resource_claim,
    "resource.ResourceClaimTemplate": named_and_aged,
    "resource.ResourceSlice": _resource_slice,
    "resource.DeviceClass": named_and_aged,
    "autoscaling.HorizontalPodAutoscaler": control_cells.autoscaler,
    "core.ResourceQuota": control_cells.quota,
    "core.Endpoints": control_cells.endpoints,
    "discovery.EndpointSlice": control_cells.endpoint_slice,
    "networking.Ingress": control_cells.ingress,
    "networking.IngressClass": control_cells.ingress_class,
    "networking.NetworkPolicy": _network_policy,
    "networking.IPAddress": control_cells.ip_address,
    "networking.ServiceCIDR": control_cells.service_cidr,
    "node.RuntimeClass": control_cells.runtime_class,
    "rbac.RoleBinding": control_cells.role_binding,
    "rbac.ClusterRoleBinding": control_cells.role_binding,
    "apiregistration.APIService": control_cells.api_service,
    "admissionregistration.MutatingWebhookConfiguration": control_cells.webhooks,
    "admissionregistration.ValidatingWebhookConfiguration": control_cells.webhooks,
}
"""The function of each kind, by the first label of its group and its name. Other kinds show name and age."""
