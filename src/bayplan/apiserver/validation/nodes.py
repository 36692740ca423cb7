"""Validation of nodes."""

from __future__ import annotations

from bayplan.apiserver.model.errors import Cause, duplicate, forbidden_value, invalid_value
from bayplan.apiserver.validation.declared_features import declared_features
from bayplan.apiserver.validation.engine import Causes, changed_metadata, go_value, kind
from bayplan.apiserver.validation.formats import cidr, parse_cidr
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.node_annotations import node_annotations
from bayplan.apiserver.validation.resources import resource_amount
from bayplan.apiserver.validation.tolerations import taints
from bayplan.base.plain_data import Document, part, parts, texts


def _node_resources(node: Document, path: str, out: Causes) -> None:
    for name in ("capacity", "allocatable"):
        for resource, amount in sorted(part(node, "status", name).items()):
            resource_amount(resource, str(amount), f"status.{name}.{resource}", out)


def _pod_cidrs(node: Document, path: str, out: Causes) -> None:
    found = texts(part(node, "spec"), "podCIDRs")
    for index, text in enumerate(found):
        cidr(text, f"spec.podCIDRs[{index}]", out)
    if len(found) > 1:
        networks = [parse_cidr(text) for text in found]
        for index, (text, network) in enumerate(zip(found, networks, strict=True)):
            if network is None:
                why = f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
                detail = f"Internal error: invalid PodCIDRs. failed to check with dual stack with error:{why}"
                out.append(Cause("InternalError", detail, "spec.podCIDRs"))
                break
        if len({network.version for network in networks if network}) < 2 or len(found) > 2:
            detail = "may specify no more than one CIDR for each IP family"
            out.append(invalid_value("spec.podCIDRs", go_value(found), detail))


def _node_update(new: Document, old: Document, out: Causes) -> None:
    spec, before = part(new, "spec"), part(old, "spec")
    node_annotations(new, "", out)
    _node_resources(new, "", out)
    seen: list[Document] = []
    for index, address in enumerate(parts(part(new, "status"), "addresses")):
        if address in seen:
            out.append(duplicate(f"status.addresses[{index}]", shown_as("core.NodeAddress")(address)))
        seen.append(address)
    once = 'node updates may not change {} except from "" to valid'
    networks, networks_before = texts(spec, "podCIDRs"), texts(before, "podCIDRs")
    if networks_before and len(networks) != len(networks_before):
        out.append(forbidden_value("spec.podCIDRs", once.format("podCIDR")))
    elif networks_before:
        changed = sum(text != was for text, was in zip(networks, networks_before, strict=True))
        out.extend([forbidden_value("spec.podCIDRs", once.format("podCIDR"))] * changed)
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        out.append(forbidden_value("spec.providerID", once.format("providerID")))
    taints(spec, out)
    if spec.get("externalID") != before.get("externalID"):
        out.append(forbidden_value("spec.externalID", "may not be updated"))


NODE = kind(
    node_annotations,
    lambda node, _path, out: taints(part(node, "spec"), out),
    _node_resources,
    declared_features,
    _pod_cidrs,
    after=[changed_metadata(), _node_update],
    status=[_node_update, lambda new, _old, out: declared_features(new, "", out)],
    metadata=("object",),
)
