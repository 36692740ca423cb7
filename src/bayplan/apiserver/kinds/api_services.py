"""APIServices: the condition Available, which reports whether the Service that serves an API can be reached.

There is no network behind Services, so even a Service with endpoints fails the last check: the request for the API's
discovery document.

Source: staging/src/k8s.io/kube-aggregator/pkg/controllers/status v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.kinds.conditions import with_condition
from bayplan.apiserver.kinds.strategy import Cluster, Context, Strategy
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

TABLE = "apiregistration.k8s.io/apiservices"
SERVICES, SLICES = "services", "discovery.k8s.io/endpointslices"
"""Tables whose objects determine the conditions."""
SERVICE_NAME = "kubernetes.io/service-name"
"""The label of a slice that names its Service."""


class ApiServiceStrategy(Strategy):
    """APIServices."""

    unconditional_update = False
    name_check = "path"

    def prepare_create(self, context: Context, document: Document) -> None:
        """Remove the status of a new object. An API without a Service is available from the start."""
        super().prepare_create(context, document)
        if not part(document, "spec").get("service"):
            document["status"] = {"conditions": [available(context.cluster, document)]}


def is_remote(document: Document) -> bool:
    """Return whether a Service serves the API."""
    return bool(part(document, "spec").get("service"))


def service_key(document: Document) -> tuple[str, str]:
    """Return namespace and name of the Service that serves a remote API."""
    reference = part(document, "spec", "service")
    return str(reference.get("namespace")), str(reference.get("name"))


def available_status(cluster: Cluster, document: Document) -> Document | None:
    """Return the status of an APIService with its current condition Available, or None if it does not change."""
    before = part(document, "status")
    after = with_condition(before, available(cluster, document))
    return None if after["conditions"] == before.get("conditions") else after


def available(cluster: Cluster, document: Document) -> Document:
    """Return the condition Available of an APIService, with the current time as the time of its transition."""
    reason, message = _problem(cluster, part(document, "spec"))
    condition: Document = {"type": "Available", "status": "False", "lastTransitionTime": cluster.now()}
    if not reason:
        condition["status"] = "True"
        reason, message = "Local", "Local APIServices are always available"
    return {**condition, "reason": reason, "message": message}


def _problem(cluster: Cluster, spec: Document) -> tuple[str, str]:
    """Return why an API is not available, as a reason and a message; both are empty for a local API."""
    reference = part(spec, "service")
    if not reference:
        return "", ""
    namespace, name = service_key({"spec": spec})
    port, what = reference.get("port") or 443, f"service/{name} in {quote(namespace)}"
    service = cluster.find(SERVICES, namespace, name)
    if service is None:
        return "ServiceNotFound", f"{what} is not present"
    of_service = part(service, "spec")
    address = of_service.get("externalName")
    if of_service.get("type", "ClusterIP") == "ClusterIP":
        address = of_service.get("clusterIP")
        listening = [each for each in parts(of_service, "ports") if each.get("port") == port]
        if not listening:
            return "ServicePortError", f"{what} is not listening on port {port}"
        slices = cluster.labelled(SLICES, namespace, SERVICE_NAME, name)
        if not slices:
            return "EndpointsNotFound", f"cannot find endpointslices for {what}"
        port_name = str(listening[0].get("name") or "")
        if not any(
            parts(each, "endpoints") and any((of.get("name") or "") == port_name for of in parts(each, "ports"))
            for each in slices
        ):
            text = f"endpointslices for {what} have no addresses with port name {quote(port_name)}"
            return "MissingEndpoints", text
    url = f"https://{address}:{port}/apis/{spec.get('group')}/{spec.get('version')}"
    text = f'failing or missing response from {url}: Get "{url}": context deadline exceeded'
    return "FailedDiscoveryCheck", text
