"""Validation rules of compute resources: names, amounts, requests above limits, and resource claims of containers."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.model.errors import Cause, duplicate, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes, sent
from bayplan.apiserver.validation.formats import amount_of, dns_label
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.names import check_qualified_name
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import quote

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTS = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_STANDARD_QUOTA = frozenset((
    *_COMPUTE, *_COUNTS, "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
))  # fmt: skip
_STANDARD = _STANDARD_QUOTA | {"storage"}
_INTEGERS = frozenset(_COUNTS)
_HUGE_PAGES = "hugepages-"
_REQUESTED_HUGE_PAGES = "requests.hugepages-"
_POD_LEVEL = ("cpu", "memory")
_OVERCOMMIT = "Limit must be set for non overcommitable resources"


def is_native(name: str) -> bool:
    """Return whether a resource name has no prefix or contains ``kubernetes.io/``, which is upstream's test."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource, such as the resource of a device plugin."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not check_qualified_name(f"requests.{name}")


def is_huge_page(name: str) -> bool:
    """Return whether a resource stands for huge pages of some size."""
    return name.startswith(_HUGE_PAGES)


def allows_overcommit(name: str) -> bool:
    """Return whether the limit of a resource may exceed its request."""
    return is_native(name) and not is_huge_page(name)


def resource_name(name: str, path: str, out: Causes) -> bool:
    """Check the name of any resource, and return whether it is valid."""
    problems = check_qualified_name(name)
    out.extend(invalid_value(path, quote(name), problem) for problem in problems)
    if problems:
        return False
    if (
        "/" not in name
        and name not in _STANDARD
        and not is_huge_page(name)
        and not name.startswith(_REQUESTED_HUGE_PAGES)
    ):
        out.append(invalid_value(path, quote(name), "must be a standard resource type or fully qualified"))
        return False
    return True


def container_resource_name(found: object, path: str, out: Causes) -> None:
    """Check the name of a resource that a container requests or limits."""
    name = str(found)
    if name in _COMPUTE:
        return
    resource_name(name, path, out)
    if "/" not in name:
        if not is_huge_page(name):
            out.append(invalid_value(path, quote(name), "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        out.append(invalid_value(path, quote(name), "doesn't follow extended resource name standard"))


def pod_resource_name(name: str, path: str, out: Causes) -> None:
    """Check the name of a pod-level resource."""
    if resource_name(name, path, out) and name not in _POD_LEVEL and not is_huge_page(name):
        out.append(not_supported(path, quote(name), ("cpu", "hugepages-", "memory")))


def quota_resource_name(name: str, path: str, out: Causes) -> None:
    """Check the name of a resource in a quota."""
    resource_name(name, path, out)
    if "/" not in name and not is_standard_quota(name):
        out.append(invalid_value(path, quote(name), "must be a standard resource for quota"))


def is_standard_quota(name: str) -> bool:
    """Return whether a quota can limit a resource of this name without a prefix such as ``example.com/``."""
    return name in _STANDARD_QUOTA or is_huge_page(name) or name.startswith(_REQUESTED_HUGE_PAGES)


def resource_amount(name: str, amount: str, path: str, out: Causes) -> None:
    """Check the amount of a resource: not negative, and an integer if the resource is counted."""
    quantity = amount_of(amount)
    if quantity.sign() < 0:
        out.append(invalid_value(path, quote(amount), "must be greater than or equal to 0"))
    if (name in _INTEGERS or is_extended(name)) and quantity.milli_value() % 1000:
        out.append(invalid_value(path, quote(amount), "must be an integer"))


def basic_amount(amount: str, path: str) -> list[Cause]:
    """Return a list with an error if an amount is negative, else an empty list."""
    quantity = amount_of(amount)
    if quantity.value() < 0:
        return [invalid_value(path, str(quantity.value()), "must be a valid resource quantity")]
    return []


def _huge_pages(name: str, amount: str, path: str, out: Causes) -> None:
    try:
        size = Quantity.parse(name.removeprefix(_HUGE_PAGES) or "0")
    except InputError:
        size = Quantity.parse("0")  # A name that is not an amount has no multiples.
    is_size = size.sign() > 0 and size.milli_value() % 1000 == 0 and size.value() != 0
    if not is_size or amount_of(amount).value() % size.value():
        out.append(invalid_value(path, quote(amount), f"{amount} is not positive integer multiple of {name}"))


_NameCheck = Callable[[str, str, Causes], None]


def resource_requirements(
    document: Document, path: str, out: Causes, *, name_check: _NameCheck, claims: frozenset[str]
) -> None:
    """Check limits, requests and resource claims.

    Args:
        document: the resource requirements.
        path: the path of the requirements.
        out: receives the errors.
        name_check: checks the name of a resource.
        claims: the names of the pod's resource claims.
    """
    limits, requests = part(document, "limits"), part(document, "requests")
    for name in sorted(limits):
        here, amount = f"{path}.limits[{name}]", str(limits[name])
        name_check(name, here, out)
        resource_amount(name, amount, here, out)
        if is_huge_page(name):
            _huge_pages(name, amount, here, out)
    for name in sorted(requests):
        here, amount = f"{path}.requests[{name}]", str(requests[name])
        name_check(name, here, out)
        resource_amount(name, amount, here, out)
        _compare_with_limit(name, amount, limits, path, out)
        if is_huge_page(name):
            _huge_pages(name, amount, here, out)
    names = limits.keys() | requests.keys()
    if names and not names & {"cpu", "memory"} and any(is_huge_page(name) for name in names):
        out.append(forbidden_value(path, "HugePages require cpu or memory"))
    if "claims" in document:
        _claim_names(parts(document, "claims"), f"{path}.claims", claims, out)


def _compare_with_limit(name: str, amount: str, limits: Document, path: str, out: Causes) -> None:
    limit = limits.get(name)
    if limit is None:
        if not allows_overcommit(name):
            out.append(required(f"{path}.limits", _OVERCOMMIT))
        return
    asked, allowed = amount_of(amount), amount_of(str(limit))
    if asked != allowed and not allows_overcommit(name):
        detail = f"must be equal to {name} limit of {limit}"
    elif asked > allowed:
        detail = f"must be less than or equal to {name} limit of {limit}"
    else:
        return
    out.append(invalid_value(f"{path}.requests", quote(amount), detail))


def _claim_names(claims: list[Document], path: str, known: frozenset[str], out: Causes) -> None:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", str(claim.get("name") or ""), str(claim.get("request") or "")
        if not name:
            out.append(required(here))
        elif name in names:
            out.append(duplicate(here, quote(name)))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                dns_label(request, f"{here}.request", out)
            if key in names:
                out.append(duplicate(here, quote(key)))
            elif not request and any(each.partition("/")[0] == name for each in names):
                out.append(duplicate(here, quote(name)))
            names.add(key)
        if name and name not in known:
            detail = "must be one of the names in pod.spec.resourceClaims"
            detail += f": {', '.join(sorted(known))}" if known else " which is empty"
            out.append(Cause("FieldValueNotFound", f"Not found: {quote(name)}: {detail}", here))


_NO_CLAIMS: frozenset[str] = frozenset()


def container_resources(document: Document, path: str, out: Causes, claims: frozenset[str] = _NO_CLAIMS) -> None:
    """Check the resources of a container."""
    resource_requirements(document, path, out, name_check=container_resource_name, claims=claims)


def pod_resources(document: Document, path: str, out: Causes, claims: frozenset[str]) -> None:
    """Check pod-level resources."""
    if sent(document, "claims") is not None:
        out.append(forbidden_value(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    resource_requirements(document, path, out, name_check=pod_resource_name, claims=claims)
