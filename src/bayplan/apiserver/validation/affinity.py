"""Validation rules of node affinity, pod affinity and topology spread constraints."""

from __future__ import annotations

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, required
from bayplan.apiserver.validation.engine import (
    Causes,
    at_least,
    each,
    field,
    inside,
    must,
    number,
    one_of,
    optional,
    table,
    value,
)
from bayplan.apiserver.validation.formats import dns_label
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR, NODE_SELECTOR, PREFERRED_NODE_TERM
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_qualified_name
from bayplan.objects.selectors import quote

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_IN_BOTH = "exists in both matchLabelKeys and "
_weight = number(
    "weight", must(lambda found: isinstance(found, int) and 1 <= found <= 100, "must be in the range 1-100")
)


def _label_keys(document: Document, path: str, out: Causes) -> None:
    """Check matchLabelKeys and mismatchLabelKeys, the label keys that are merged into a selector."""
    match, mismatch = texts(document, "matchLabelKeys"), texts(document, "mismatchLabelKeys")
    if not match and not mismatch:
        return
    selector = document.get("labelSelector")
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and not isinstance(selector, dict):
            detail = "must not be specified when labelSelector is not set"
            out.append(forbidden_value(f"{path}.{name}", detail))
            continue
        for index, key in enumerate(keys):
            for problem in check_qualified_name(key):
                out.append(invalid_value(f"{path}.{name}[{index}]", quote(key), problem))
    if isinstance(selector, dict):
        known = set(part(selector, "matchLabels"))
        for expression in parts(selector, "matchExpressions"):
            key = str(expression.get("key") or "")
            if key in match and key in known:
                last = len(match) - 1 - match[::-1].index(key)
                out.append(invalid_value(f"{path}[{last}]", quote(key), f"{_IN_BOTH}labelSelector"))
            known.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            here = f"{path}.matchLabelKeys[{index}]"
            out.append(invalid_value(here, quote(key), f"{_IN_BOTH}mismatchLabelKeys"))


def _topology_key(document: Document, path: str, out: Causes) -> None:
    key = str(document.get("topologyKey") or "")
    if not key:
        out.append(required(f"{path}.topologyKey", "can not be empty"))
    out.extend(invalid_value(f"{path}.topologyKey", quote(key), problem) for problem in check_qualified_name(key))


def _namespaces(document: Document, path: str, out: Causes) -> None:
    for name in texts(document, "namespaces"):
        dns_label(name, f"{path}.namespace", out)


_POD_TERM = table(
    optional("labelSelector", LABEL_SELECTOR),
    optional("namespaceSelector", LABEL_SELECTOR),
    _namespaces,
    _label_keys,
    _topology_key,
)
_POD_AFFINITY = table(each(_REQUIRED, _POD_TERM), each(_PREFERRED, _weight, inside("podAffinityTerm", _POD_TERM)))
AFFINITY = table(
    optional(
        "nodeAffinity",
        optional(_REQUIRED, NODE_SELECTOR),
        each(_PREFERRED, _weight, inside("preference", PREFERRED_NODE_TERM)),
    ),
    optional("podAffinity", _POD_AFFINITY),
    optional("podAntiAffinity", _POD_AFFINITY),
)

# --- topology spread --------------------------------------------------------------------------------------------------

_SPREAD_START = table(
    number("maxSkew", at_least(1, "must be greater than zero")),
    lambda constraint, path, out: (
        None if constraint.get("topologyKey") else out.append(required(f"{path}.topologyKey", "can not be empty"))
    ),
    value("whenUnsatisfiable", one_of("DoNotSchedule", "ScheduleAnyway")),
)


def _min_domains(document: Document, path: str, out: Causes) -> None:
    found, action = document.get("minDomains"), document.get("whenUnsatisfiable") or ""
    if not isinstance(found, int):
        return
    here = f"{path}.minDomains"
    if found <= 0:
        out.append(invalid_value(here, str(found), "must be greater than zero"))
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        out.append(invalid_value(here, str(found), detail))


_SPREAD_END = table(
    _min_domains,
    field("nodeAffinityPolicy", one_of("Honor", "Ignore")),
    field("nodeTaintsPolicy", one_of("Honor", "Ignore")),
    _label_keys,
    optional("labelSelector", LABEL_SELECTOR),
)


def spread_constraints(document: Document, path: str, out: Causes) -> None:
    """Check the topology spread constraints in a pod's spec."""
    found = parts(document, "topologySpreadConstraints")
    pairs = [(str(each.get("topologyKey") or ""), str(each.get("whenUnsatisfiable") or "")) for each in found]
    for index, constraint in enumerate(found):
        here = f"{path}.topologySpreadConstraints[{index}]"
        _SPREAD_START(constraint, here, out)
        if pairs[index] in pairs[index + 1 :]:
            key, action = pairs[index]
            out.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", quote(f"{{{key}, {action}}}")))
        _SPREAD_END(constraint, here, out)
