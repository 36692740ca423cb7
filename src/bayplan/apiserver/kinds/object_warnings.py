"""Warnings for clients about objects, one function per table.

Warnings about workloads include those about their pod template.

Source: the functions GetWarningsFor... and WarningsOnCreate of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bayplan.apiserver.kinds.address_warnings import address_warnings, network_warnings
from bayplan.apiserver.kinds.default_functions import TEMPLATE_GENERATION
from bayplan.apiserver.kinds.definition_warnings import definition_warnings
from bayplan.apiserver.kinds.key_pairs import key_pair_warnings
from bayplan.apiserver.kinds.pod_warnings import (
    DEPRECATED_LABELS,
    VOLUME_FIELDS,
    claim_spec_warnings,
    selector_term_warnings,
    template_warnings,
)
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_dns1123_label
from bayplan.objects.selectors import quote

_ENFORCED = "kubernetes.io/enforce-mountable-secrets"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_OLD_HINTS, _HINTS = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_TEMPLATES = {
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
    "apps/deployments": ("spec", "template"),
    "apps/replicasets": ("spec", "template"),
    "apps/daemonsets": ("spec", "template"),
    "apps/statefulsets": ("spec", "template"),
    "batch/jobs": ("spec", "template"),
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_RECYCLE = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
_MAX_SILENT_COMPLETIONS, _MAX_SILENT_PODS = 100_000, 10_000
_MANY = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be "
    "able to track completedIndexes when a big number of indexes fail"
)
_TOKENS_LOGGED = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of "
    "tokens in volume attributes"
)


def object_warnings(table: str, document: Document, before: Document | None) -> list[str]:
    """Return the warnings about an object.

    Args:
        table: the table of the object.
        document: the object in the stored version.
        before: the previous object, None for a create. Workloads only get warnings when their generation has changed,
            and DaemonSets only when their template has.
    """
    if table == "apiextensions.k8s.io/customresourcedefinitions":
        return definition_warnings(document, before)
    if before is not None and table == "apps/statefulsets":
        is_changed = _generation(table, document) != _generation(table, before)
        template = template_warnings(part(document, "spec", "template"), "spec.template.") if is_changed else []
        return template + list(_stateful_set(document, ".Spec"))
    if before is not None and table in _TEMPLATES and _generation(table, document) == _generation(table, before):
        return []
    if before is not None and table == "serviceaccounts" and _ENFORCED in part(before, "metadata", "annotations"):
        return []
    if (
        before is not None
        and table == "storage.k8s.io/csidrivers"
        and _token_requests(document) == _token_requests(before)
    ):
        return []
    if before is not None and table == "networking.k8s.io/ingresses":
        return []
    if before is not None and table == "discovery.k8s.io/endpointslices":
        return list(_endpoint_addresses(document))
    found = list(_OF_KIND[table](document)) if table in _OF_KIND else []
    if before is not None and table == "replicationcontrollers":
        document = before  # Upstream confuses both templates.
    path = _TEMPLATES.get(table)
    if path is None:
        return found
    template = template_warnings(part(document, *path), f"{'.'.join(path)}.")
    return template + found if table == "apps/statefulsets" else found + template


def _generation(table: str, document: Document) -> object:
    """Return the generation whose change repeats warnings: a DaemonSet's template generation, else `metadata.generation`."""
    if table == "apps/daemonsets":
        return part(document, "metadata", "annotations").get(TEMPLATE_GENERATION)
    return part(document, "metadata").get("generation")


def pod_warnings(pod: Document) -> list[str]:
    """Return the warnings about a pod."""
    return [*host_name_warnings(pod), *template_warnings(pod, "")]


def host_name_warnings(pod: Document) -> list[str]:
    """Return a warning if the name of a pod is not a valid host name, else an empty list."""
    name = str(part(pod, "metadata").get("name") or "")
    problems = check_dns1123_label(name)
    if not problems:
        return []
    text = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {text}: [{' '.join(problems)}]"]


def _named_by_pods(document: Document) -> Iterator[str]:
    name = str(part(document, "metadata").get("name") or "")
    problems = check_dns1123_label(name)
    if problems:
        text = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: {text}: [{' '.join(problems)}]"


def _stateful_set(document: Document, below: str = "") -> Iterator[str]:
    """Yield the warnings about a StatefulSet. `below`: what upstream adds to the paths of claims in an update."""
    spec = part(document, "spec")
    for index, claim in enumerate(parts(spec, "volumeClaimTemplates")):
        yield from claim_spec_warnings(part(claim, "spec"), f"spec.volumeClaimTemplates[{index}]{below}")
    limit = spec.get("revisionHistoryLimit")
    if isinstance(limit, int) and limit < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {text}"


def _job(document: Document) -> Iterator[str]:
    yield from _named_by_pods(document)
    spec = part(document, "spec")
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    if not isinstance(completions, int) or not isinstance(parallelism, int):
        return
    if (
        spec.get("completionMode") == "Indexed"
        and completions > _MAX_SILENT_COMPLETIONS
        and parallelism > _MAX_SILENT_PODS
    ):
        yield f"spec: {_MANY}"


def _service(document: Document) -> Iterator[str]:
    spec, annotations = part(document, "spec"), part(document, "metadata", "annotations")
    if _OLD_HINTS in annotations:
        yield f"annotation {_OLD_HINTS} is deprecated, please use {_HINTS} instead"
    is_headless, kind = spec.get("clusterIP") == "None", spec.get("type")
    external = texts(spec, "externalIPs")
    if is_headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") not in (None, "None"):
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(external):
        yield from address_warnings(address, f"spec.externalIPs[{index}]")
    if external and not is_headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings(spec.get("loadBalancerIP"), "spec.loadBalancerIP")
    for index, network in enumerate(texts(spec, "loadBalancerSourceRanges")):
        yield from network_warnings(network, f"spec.loadBalancerSourceRanges[{index}]")
    if external and kind == "ExternalName":
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("externalName") and kind != "ExternalName":
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _beta_class(document: Document) -> Iterator[str]:
    if _BETA_CLASS in part(document, "metadata", "annotations"):
        yield f'metadata.annotations[{_BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'


def _claim(document: Document) -> Iterator[str]:
    yield from _beta_class(document)
    yield from claim_spec_warnings(part(document, "spec"), "spec")


def _volume(document: Document) -> Iterator[str]:
    yield from _beta_class(document)
    spec = part(document, "spec")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}"
    for index, term in enumerate(parts(part(spec, "nodeAffinity", "required"), "nodeSelectorTerms")):
        yield from selector_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for name, text in _VOLUMES.items():
        if spec.get(name) is not None:
            yield f"spec.{VOLUME_FIELDS.get(name, name)}: {text}"


def _ingress(document: Document) -> Iterator[str]:
    is_old = _INGRESS_CLASS in part(document, "metadata", "annotations")
    if is_old and part(document, "spec").get("ingressClassName") is None:
        yield f"annotation {quote(_INGRESS_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"


def _endpoint_slice(document: Document) -> Iterator[str]:
    if document.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    yield from _endpoint_addresses(document)


_FIRST_HAND = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
"""Controllers whose endpoint slices get no warnings about addresses, because they write them in standard notation."""


def _endpoint_addresses(document: Document) -> Iterator[str]:
    if part(document, "metadata", "labels").get("endpointslice.kubernetes.io/managed-by") in _FIRST_HAND:
        return
    for index, endpoint in enumerate(parts(document, "endpoints")):
        for at, address in enumerate(texts(endpoint, "addresses")):
            yield from address_warnings(address, f"endpoints[{index}].addresses[{at}]")


def _node(document: Document) -> Iterator[str]:
    spec = part(document, "spec")
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is no longer supported"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _service_account(document: Document) -> Iterator[str]:
    if _ENFORCED in part(document, "metadata", "annotations"):
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_ENFORCED}]: {text}"


def _storage_class(document: Document) -> Iterator[str]:
    for index, topology in enumerate(parts(document, "allowedTopologies")):
        for at, expression in enumerate(parts(topology, "matchLabelExpressions")):
            key = str(expression.get("key"))
            if key in DEPRECATED_LABELS:
                field = f"allowedTopologies[{index}].matchLabelExpressions[{at}].key"
                yield f"{field}: {DEPRECATED_LABELS[key]}"


def _runtime_class(document: Document) -> Iterator[str]:
    for key in sorted(part(document, "scheduling", "nodeSelector")):
        if key in DEPRECATED_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_LABELS[key]}"


def _token_requests(driver: Document) -> list[Document]:
    return parts(part(driver, "spec"), "tokenRequests")


def _driver(document: Document) -> Iterator[str]:
    spec = part(document, "spec")
    if _token_requests(document) and spec.get("serviceAccountTokenInSecrets") is None:
        yield _TOKENS_LOGGED


_OF_KIND: dict[str, Callable[[Document], Iterable[str]]] = {
    "services": _service,
    "serviceaccounts": _service_account,
    "persistentvolumes": _volume,
    "persistentvolumeclaims": _claim,
    "nodes": _node,
    "replicationcontrollers": _named_by_pods,
    "apps/deployments": _named_by_pods,
    "apps/replicasets": _named_by_pods,
    "apps/statefulsets": _stateful_set,
    "batch/jobs": _job,
    "batch/cronjobs": _named_by_pods,
    "networking.k8s.io/ingresses": _ingress,
    "discovery.k8s.io/endpointslices": _endpoint_slice,
    "secrets": key_pair_warnings,
    "storage.k8s.io/storageclasses": _storage_class,
    "storage.k8s.io/csidrivers": _driver,
    "node.k8s.io/runtimeclasses": _runtime_class,
}
