"""What is wrong with the resources of a container: names, amounts, requests above limits."""

from __future__ import annotations

from functools import lru_cache

from bayplan.apiserver.kinds.strategy import part
from bayplan.apiserver.rest.errors import Cause, forbidden_value, invalid_value
from bayplan.base.plain_data import Document
from bayplan.objects.names import check_qualified_name
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import quote

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))
_HUGE_PAGES = "hugepages-"
_WHOLE_ONLY = "must be an integer"


@lru_cache(maxsize=16384)
def amount_of(text: str) -> Quantity:
    """Return an amount; the same few stand in most pods."""
    return Quantity.parse(text)


def check_container_resources(resources: Document, field: str) -> list[Cause]:
    """Return what is wrong with resources."""
    causes: list[Cause] = []
    limits, requests = part(resources, "limits"), part(resources, "requests")
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            causes += _check_amount(name, str(amount), f"{field}.{kind}[{name}]")
    for name, amount in sorted(requests.items()):
        causes += _check_request(name, str(amount), limits, f"{field}.requests")
    return causes


def _is_extended(name: str) -> bool:
    return (
        "/" in name
        and not name.startswith("requests.")
        and ".kubernetes.io" not in name.partition("/")[0]
        and (name.partition("/")[0] != "kubernetes.io")
    )


def _check_amount(name: str, amount: str, field: str) -> list[Cause]:
    causes = [invalid_value(field, quote(name), each) for each in check_qualified_name(name)]
    if not causes and "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        causes.append(invalid_value(field, quote(name), "must be a standard resource type or fully qualified"))
        causes.append(invalid_value(field, quote(name), "must be a standard resource for containers"))
    quantity = amount_of(amount)
    if quantity.sign() < 0:
        causes.append(invalid_value(field, quote(amount), "must be greater than or equal to 0"))
    elif _is_extended(name) and quantity.milli_value() % 1000:
        causes.append(invalid_value(field, quote(amount), _WHOLE_ONLY))
    return causes


def _check_request(name: str, amount: str, limits: Document, field: str) -> list[Cause]:
    limit = limits.get(name)
    if limit is None:
        if _is_extended(name) or name.startswith(_HUGE_PAGES):
            return [
                forbidden_value(
                    f"{field.rpartition('.')[0]}.limits", "Limit must be set for non overcommitable resources"
                )
            ]
        return []
    asked, allowed = amount_of(amount), amount_of(str(limit))
    if asked != allowed and (_is_extended(name) or name.startswith(_HUGE_PAGES)):
        return [invalid_value(field, quote(amount), f"must be equal to {name} limit of {limit}")]
    if asked > allowed:
        return [invalid_value(field, quote(amount), f"must be less than or equal to {name} limit of {limit}")]
    return []
