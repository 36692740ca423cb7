"""Limit ranges: defaults for containers without amounts, and bounds for containers, pods and claims.

The rules work on amounts, and don't depend on documents or the API, so that the API server and simulations share them.

Source: https://kubernetes.io/docs/concepts/policy/limit-range/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.objects.pod_amounts import Amounts, ContainerAmounts, PodAmounts
from bayplan.objects.quantity import Quantity

_MAX_MILLI = (2**63 - 1) // 1000
CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"


class Limit(msgspec.Struct, frozen=True):
    """One entry of a limit range.

    Attributes:
        type: the type of the limit: ``Container``, ``Pod`` or ``PersistentVolumeClaim``.
        min, max, default, default_request: the amounts by resource.
        ratio: the maximum ratio of limit to request, by resource.
    """

    type: str = ""
    min: Amounts = {}
    max: Amounts = {}
    default: Amounts = {}
    default_request: Amounts = {}
    ratio: Amounts = {}


def with_defaults(limit: Limit) -> Limit:
    """Return an entry with the API's defaults.

    Limits of containers default to the maximum, requests to the limit or else the minimum.
    """
    if limit.type != CONTAINER:
        return limit
    default = {**limit.max, **limit.default}
    return replace(limit, default=default, default_request={**limit.min, **default, **limit.default_request})


class Filled(msgspec.Struct, frozen=True):
    """A pod after the defaults of limit ranges are set.

    Attributes:
        pod: the pod.
        notes: the defaults that were set, as text for the pod's annotation; "" if none were.
    """

    pod: PodAmounts
    notes: str


def fill_in(limits: Iterable[Limit], pod: PodAmounts) -> Filled:
    """Set the default requests and limits of containers that lack them; return the pod and what was set."""
    notes: list[str] = []
    for limit in limits:
        if limit.type == CONTAINER and (limit.default or limit.default_request):
            containers = tuple(_filled(each, limit, "container", notes) for each in pod.containers)
            init_containers = tuple(_filled(each, limit, "init container", notes) for each in pod.init_containers)
            pod = replace(pod, containers=containers, init_containers=init_containers)
    return Filled(pod, f"LimitRanger plugin set: {'; '.join(notes)}" if notes else "")


def _filled(container: ContainerAmounts, limit: Limit, title: str, notes: list[str]) -> ContainerAmounts:
    found: dict[str, Amounts] = {"requests": container.requests, "limits": container.limits}
    for kind, word, defaults in (("requests", "request", limit.default_request), ("limits", "limit", limit.default)):
        missing = sorted(name for name in defaults if name not in found[kind])
        if missing:
            found[kind] = {**found[kind], **{name: defaults[name] for name in missing}}
            notes.append(f"{', '.join(missing)} {word} for {title} {container.name}")
    return replace(container, requests=found["requests"], limits=found["limits"])


def pod_problems(limits: Sequence[Limit], pod: PodAmounts) -> list[str]:
    """Return upstream's messages about amounts of a pod that are below or above the limits."""
    problems: list[str] = []
    for limit in limits:
        if limit.type == CONTAINER:
            for container in (*pod.containers, *pod.init_containers):
                problems += _problems(limit, container.requests, container.limits)
        elif limit.type == POD:
            problems += _problems(limit, pod.total("requests", overhead=False), pod.total("limits", overhead=False))
    return problems


def claim_problems(limits: Iterable[Limit], requests: Amounts) -> list[str]:
    """Return upstream's messages about amounts of a claim that are below or above the limits."""
    problems: list[str] = []
    for limit in limits:
        if limit.type == CLAIM:
            problems += _too_little(limit, requests, {})
            problems += _too_much(limit, requests, None)
    return problems


def joined(problems: Iterable[str]) -> str:
    """Return messages as one text, each once, in brackets if there are several."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _problems(limit: Limit, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _too_little(limit, requests, limits)
    yield from _too_much(limit, requests, limits)
    yield from _too_wide(limit, requests, limits)


def _bounds(limit: Limit, amounts: Amounts) -> list[tuple[str, Quantity, str]]:
    """Return each resource with its bound and the beginning of messages: ``cpu usage per Container is 2``."""
    return [(name, bound, f"{name} usage per {limit.type} is {bound}") for name, bound in sorted(amounts.items())]


def _values(*amounts: Quantity) -> tuple[int, ...]:
    """Return amounts as comparable integers: in thousandths, or whole units if one of them is too large for that."""
    whole = tuple(amount.value() for amount in amounts)
    return tuple(amount.milli_value() for amount in amounts) if max(whole) <= _MAX_MILLI else whole


def _exceeds(left: Quantity, right: Quantity) -> bool:
    first, second = _values(left, right)
    return first > second


def _too_little(limit: Limit, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound, text in _bounds(limit, limit.min):
        request, most = requests.get(name), limits.get(name)
        if request is None:
            yield f"minimum {text}.  No request is specified"
        elif _exceeds(bound, request):
            yield f"minimum {text}, but request is {request}"
        elif most is not None and _exceeds(bound, most):
            yield f"minimum {text}, but limit is {most}"


def _too_much(limit: Limit, requests: Amounts, limits: Amounts | None) -> Iterator[str]:
    """Yield messages about amounts above the maximum; `limits` is None for objects that have only requests."""
    for name, bound, text in _bounds(limit, limit.max):
        request, most = requests.get(name), None if limits is None else limits.get(name)
        if limits is None and request is None:
            yield f"maximum {text}.  No request is specified"
        elif limits is not None and most is None:
            yield f"maximum {text}.  No limit is specified"
        elif most is not None and _exceeds(most, bound):
            yield f"maximum {text}, but limit is {most}"
        elif request is not None and _exceeds(request, bound):
            yield f"maximum {text}, but request is {request}"


def _too_wide(limit: Limit, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in sorted(limit.ratio.items()):
        text = f"{name} max limit to request ratio per {limit.type} is {bound}"
        request, most = requests.get(name), limits.get(name)
        if request is None or not request.sign():
            yield f"{text}, but no request is specified or request is 0"
        elif most is None or not most.sign():
            yield f"{text}, but no limit is specified or limit is 0"
        else:
            requested, allowed = _values(request, most)
            if allowed / requested * 1000 > bound.milli_value():
                yield f"{text}, but provided ratio is {allowed / requested:f}"
