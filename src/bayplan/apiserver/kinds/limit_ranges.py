"""Admission by limit ranges: applies the rules of `bayplan.objects.limit_ranges` to pods and claims."""

from __future__ import annotations

from typing import cast

import msgspec

from bayplan.apiserver.kinds.default_functions import default_pod_resources
from bayplan.apiserver.kinds.strategy import Context
from bayplan.apiserver.model.errors import forbidden
from bayplan.apiserver.validation.pod_resources import amounts_of, limits_of, pod_amounts
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.limit_ranges import CONTAINER, Limit, claim_problems, fill_in, joined, pod_problems

_ANNOTATION = "kubernetes.io/limit-ranger"


def _limits(context: Context) -> list[Limit]:
    """Return the limits of all limit ranges of the namespace, sorted by the name of the range."""
    found = [
        each
        for each in context.cluster.all("limitranges")
        if part(each, "metadata").get("namespace") == context.namespace
    ]
    return [limit for each in found for limit in limits_of(each)]


def admit_limits(context: Context, pod: Document) -> None:
    """Add the default requests and limits that containers lack, resource by resource, and an annotation that lists them."""
    limits = _limits(context)
    if not any(each.type == CONTAINER and (each.default or each.default_request) for each in limits):
        return
    filled = fill_in(limits, pod_amounts(pod))
    if not filled.notes:
        return
    # A cached spec must not change, so copy the spec of this pod.
    spec = pod["spec"] = msgspec.json.decode(msgspec.json.encode(part(pod, "spec")))
    for field, containers in (
        ("containers", filled.pod.containers),
        ("initContainers", filled.pod.init_containers),
    ):
        for document, container in zip(parts(spec, field), containers, strict=True):
            resources = cast("Document", document.setdefault("resources", {}))
            for kind, amounts in (("requests", container.requests), ("limits", container.limits)):
                given = part(resources, kind)
                added = {name: str(amount) for name, amount in amounts.items() if name not in given}
                if added:
                    resources[kind] = {**given, **added}
    default_pod_resources(spec)
    metadata = cast("Document", pod.setdefault("metadata", {}))
    metadata["annotations"] = {**part(metadata, "annotations"), _ANNOTATION: filled.notes}


def check_pod_limits(context: Context, pod: Document) -> None:
    """Raise if a pod requests less or more than limit ranges allow.

    Raises:
        ApiError: the pod violates a limit range.
    """
    limits = _limits(context)
    if limits:
        _reject(context, pod, pod_problems(limits, pod_amounts(pod)))


def check_claim_limits(context: Context, claim: Document) -> None:
    """Raise if a claim requests less or more than limit ranges allow.

    Raises:
        ApiError: the claim violates a limit range.
    """
    limits = _limits(context)
    if limits:
        requests = amounts_of(part(claim, "spec", "resources", "requests"))
        _reject(context, claim, claim_problems(limits, requests))


def _reject(context: Context, document: Document, problems: list[str]) -> None:
    if problems:
        resource = context.resource
        name = str(part(document, "metadata").get("name") or "")
        raise forbidden(resource.name, resource.group, name, joined(problems))
