"""Admission by limit ranges: defaults for containers that say nothing, and bounds for containers, pods and claims.

Source: https://kubernetes.io/docs/concepts/policy/limit-range/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from bayplan.apiserver.kinds.resource_validation import amount_of
from bayplan.apiserver.kinds.strategy import Context, part, parts
from bayplan.apiserver.rest.errors import forbidden
from bayplan.base.plain_data import Document
from bayplan.objects.quantity import Quantity

_ANNOTATION = "kubernetes.io/limit-ranger"
_MOST_MILLI = (2**63 - 1) // 1000
_POD_LEVEL = ("cpu", "memory")

Amounts = Mapping[str, Quantity]


def _ranges(context: Context) -> list[Document]:
    """Return the limits of the namespace's limit ranges, ranges in the order of their names."""
    found = [
        each
        for each in context.cluster.all("limitranges")
        if part(each, "metadata").get("namespace") == context.namespace
    ]
    return [limit for each in found for limit in parts(part(each, "spec"), "limits")]


def admit_limits(context: Context, pod: Document) -> None:
    """Give containers the requests and limits that limit ranges have for those who say nothing."""
    for limit in _ranges(context):
        if limit.get("type") == "Container" and (part(limit, "default") or part(limit, "defaultRequest")):
            # What is known of a spec holds for it as it was sent: this pod gets one of its own.
            pod["spec"] = msgspec.json.decode(msgspec.json.encode(part(pod, "spec")))
            _fill_in(pod, part(limit, "defaultRequest"), part(limit, "default"))


def _fill_in(pod: Document, requests: Document, limits: Document) -> None:
    told: list[str] = []
    for field, title in (("containers", "container"), ("initContainers", "init container")):
        for container in parts(part(pod, "spec"), field):
            resources = cast("Document", container.setdefault("resources", {}))
            for kind, word, defaults in (("requests", "request", requests), ("limits", "limit", limits)):
                given = part(resources, kind)
                missing = sorted(name for name in defaults if name not in given)
                if missing:
                    resources[kind] = {**given, **{name: defaults[name] for name in missing}}
                    told.append(f"{', '.join(missing)} {word} for {title} {container.get('name')}")
    if told:
        metadata = cast("Document", pod.setdefault("metadata", {}))
        metadata["annotations"] = {
            **part(metadata, "annotations"),
            _ANNOTATION: f"LimitRanger plugin set: {'; '.join(told)}",
        }


def check_pod_limits(context: Context, pod: Document) -> None:
    """Refuse a pod that asks for less or more than limit ranges allow.

    Raises:
        ApiError: it does.
    """
    spec, problems = part(pod, "spec"), list[str]()
    for limit in _ranges(context):
        if limit.get("type") == "Container":
            for container in (*parts(spec, "containers"), *parts(spec, "initContainers")):
                resources = part(container, "resources")
                problems += _problems(limit, _amounts(part(resources, "requests")), _amounts(part(resources, "limits")))
        elif limit.get("type") == "Pod":
            problems += _problems(limit, _of_pod(spec, "requests"), _of_pod(spec, "limits"))
    _refuse(context, pod, problems)


def check_claim_limits(context: Context, claim: Document) -> None:
    """Refuse a claim that asks for less or more than limit ranges allow.

    Raises:
        ApiError: it does.
    """
    asked = _amounts(part(claim, "spec", "resources", "requests"))
    problems: list[str] = []
    for limit in _ranges(context):
        if limit.get("type") == "PersistentVolumeClaim":
            problems += _too_little(limit, asked, {})
            problems += _too_much(limit, asked, None)
    _refuse(context, claim, problems)


def _refuse(context: Context, document: Document, problems: list[str]) -> None:
    if problems:
        resource, unique = context.resource, list(dict.fromkeys(problems))
        why = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
        raise forbidden(resource.name, resource.group, str(part(document, "metadata").get("name") or ""), why)


def _amounts(resources: Document) -> dict[str, Quantity]:
    return {name: amount_of(str(amount)) for name, amount in resources.items()}


def _of_pod(spec: Document, kind: str) -> dict[str, Quantity]:
    """Return what a pod asks for or is limited to: the sum of its containers, or the most that starting it takes."""
    total: dict[str, Quantity] = {}
    for container in parts(spec, "containers"):
        _add(total, container, kind)
    beside: dict[str, Quantity] = {}
    starting: list[dict[str, Quantity]] = []
    for container in parts(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            _add(total, container, kind)
            _add(beside, container, kind)
            starting.append(dict(beside))
        else:
            now = dict(beside)
            _add(now, container, kind)
            starting.append(now)
    for needed in starting:
        for name, amount in needed.items():
            total[name] = max(total[name], amount) if name in total else amount
    stated = _amounts(part(spec, "resources", kind))
    return total | {name: amount for name, amount in stated.items() if name in _POD_LEVEL}


def _add(total: dict[str, Quantity], container: Document, kind: str) -> None:
    for name, amount in _amounts(part(container, "resources", kind)).items():
        total[name] = total[name] + amount if name in total else amount


def _problems(limit: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _too_little(limit, requests, limits)
    yield from _too_much(limit, requests, limits)
    yield from _too_wide(limit, requests, limits)


def _bounds(limit: Document, name: str) -> list[tuple[str, Quantity, str]]:
    """Return resources with a bound of a name, and how its texts begin: ``cpu usage per Container is 2``."""
    amounts = sorted(_amounts(part(limit, name)).items())
    return [(resource, bound, f"{resource} usage per {limit.get('type')} is {bound}") for resource, bound in amounts]


def _values(*amounts: Quantity) -> tuple[int, ...]:
    """Return amounts to be compared: in thousandths, unless one is too large for that."""
    whole = tuple(amount.value() for amount in amounts)
    return tuple(amount.milli_value() for amount in amounts) if max(whole) <= _MOST_MILLI else whole


def _exceeds(left: Quantity, right: Quantity) -> bool:
    first, second = _values(left, right)
    return first > second


def _too_little(limit: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound, text in _bounds(limit, "min"):
        request, most = requests.get(name), limits.get(name)
        if request is None:
            yield f"minimum {text}.  No request is specified"
        elif _exceeds(bound, request):
            yield f"minimum {text}, but request is {request}"
        elif most is not None and _exceeds(bound, most):
            yield f"minimum {text}, but limit is {most}"


def _too_much(limit: Document, requests: Amounts, limits: Amounts | None) -> Iterator[str]:
    """Yield what is above a maximum; `limits` is None for what knows requests only."""
    for name, bound, text in _bounds(limit, "max"):
        request, most = requests.get(name), None if limits is None else limits.get(name)
        if limits is None and request is None:
            yield f"maximum {text}.  No request is specified"
        elif limits is not None and most is None:
            yield f"maximum {text}.  No limit is specified"
        elif most is not None and _exceeds(most, bound):
            yield f"maximum {text}, but limit is {most}"
        elif request is not None and _exceeds(request, bound):
            yield f"maximum {text}, but request is {request}"


def _too_wide(limit: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in sorted(_amounts(part(limit, "maxLimitRequestRatio")).items()):
        text = f"{name} max limit to request ratio per {limit.get('type')} is {bound}"
        request, most = requests.get(name), limits.get(name)
        if request is None or not request.sign():
            yield f"{text}, but no request is specified or request is 0"
        elif most is None or not most.sign():
            yield f"{text}, but no limit is specified or limit is 0"
        else:
            asked, allowed = _values(request, most)
            if allowed / asked * 1000 > bound.milli_value():
                yield f"{text}, but provided ratio is {allowed / asked:f}"
