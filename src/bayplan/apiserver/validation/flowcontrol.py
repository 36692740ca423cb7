"""Validation rules of the kinds of flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

from math import log2

from bayplan.apiserver.model.errors import invalid_value, not_supported, required
from bayplan.apiserver.schema.default_flow_control import LEVELS, MANDATORY, SCHEMAS
from bayplan.apiserver.validation.engine import (
    Causes,
    Check,
    Rule,
    at_least,
    at_most,
    choice,
    each,
    field,
    forbid,
    go_value,
    inside,
    items,
    kind,
    must,
    named,
    need,
    need_set,
    number,
    optional,
    required_if,
    table,
    unique,
    value,
    when,
)
from bayplan.apiserver.validation.formats import dns_label, dns_subdomain
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.base.plain_data import Document, part
from bayplan.objects.names import check_dns1123_label
from bayplan.objects.selectors import quote

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS = ("ByNamespace", "ByUser")
_KINDS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_NAMESPACE_INTRO = "each member of this list must be '*' or a DNS-1123 label; "
_MAX_QUEUES = 10_000_000
_MAX_HASH_BITS = 60


def _precedence(document: Document, path: str, out: Causes) -> None:
    found, name = part(document, "spec").get("matchingPrecedence", 0), part(document, "metadata").get("name")
    here = "spec.matchingPrecedence"
    at_least(1, "must be a positive value")(found, here, out)
    at_most(10000, "must not be greater than 10000")(found, here, out)
    if found == 1 and name != "exempt":
        out.append(invalid_value(here, "1", "only the schema named 'exempt' may have matchingPrecedence 1"))


def _method(document: Document, path: str, out: Causes) -> None:
    found = document.get("distinguisherMethod")
    if isinstance(found, dict) and found.get("type") not in _METHODS:
        text = shown_as("flowcontrol.FlowDistinguisherMethod")(found)
        out.append(not_supported(f"{path}.distinguisherMethod.type", text, _METHODS))


def _service_account_name(found: object, path: str, out: Causes) -> None:
    if found != "*":
        dns_subdomain(found, path, out)


_SUBJECTS = {
    "ServiceAccount": table(
        need("name", _service_account_name),
        need("namespace", dns_label, detail="must specify namespace for service account"),
    ),
    "User": need("name"),
    "Group": need("name"),
}


def _subject(document: Document, path: str, out: Causes) -> None:
    chosen = str(document.get("kind") or "")
    if chosen not in _KINDS:
        out.append(not_supported(f"{path}.kind", quote(chosen), ("Group", "ServiceAccount", "User")))
        return
    name = _KINDS[chosen]
    need_set(name, f"{name} is required when subject kind is '{chosen}'")(document, path, out)
    optional(name, _SUBJECTS[chosen])(document, path, out)
    for other_kind, other in _KINDS.items():
        if other_kind != chosen:
            forbid(other, f"{other} is forbidden when subject kind is not '{other_kind}'")(document, path, out)


def _alone(what: str) -> Check:
    def check(found: object, path: str, out: Causes) -> None:
        names = found if isinstance(found, list) else []
        if "*" in names and len(names) > 1:
            out.append(invalid_value(path, go_value(names), f"if '*' is present, must not specify other {what}"))

    return check


def _verbs(found: object, path: str, out: Causes) -> None:
    names = found if isinstance(found, list) else []
    _alone("verbs")(found, path, out)
    if "*" not in names and not set(names) <= set(_VERBS):
        out.append(not_supported(path, go_value(names), _VERBS))


def _url_problem(text: str) -> str:
    stars = text.count("*")
    for wrong, problem in (
        (not text, "must not be empty"),
        (not text.startswith("/"), "must start with slash"),
        (" " in text, "must not contain white-space"),
        ("//" in text, "must not contain double slash"),
        (stars > 1 or (stars == 1 and not text.endswith("/*")), "wildcard can only do suffix matching"),
    ):
        if wrong:
            return problem
    return ""


def _urls(found: object, path: str, out: Causes) -> None:
    names = found if isinstance(found, list) else []
    _alone("non-resource URLs")(found, path, out)
    for index, text in enumerate(() if "*" in names else names):
        problem = _url_problem(str(text))
        if problem:
            out.append(invalid_value(f"{path}[{index}]", quote(str(text)), problem))


_namespace = named(check_dns1123_label, intro=_NAMESPACE_INTRO)


def _namespaces(document: Document, path: str, out: Causes) -> None:
    found, here = document.get("namespaces") or [], f"{path}.namespaces"
    names = found if isinstance(found, list) else []
    if not names and not document.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        out.append(required(here, detail))
    elif "*" in names:
        _alone("namespaces")(names, here, out)
    else:
        items(_namespace)(names, here, out)


_RESOURCE_RULE = table(
    need("verbs", _verbs, detail="verbs must contain at least one value"),
    need("apiGroups", _alone("api groups"), detail="resource rules must supply at least one api group"),
    need("resources", _alone("resources"), detail="resource rules must supply at least one resource"),
    _namespaces,
)
_URL_RULE = table(
    need("verbs", _verbs, detail="verbs must contain at least one value"),
    need("nonResourceURLs", _urls, detail="nonResourceURLs must contain at least one value"),
)
_POLICY_RULE = table(
    need("subjects", detail="subjects must contain at least one value"),
    each("subjects", _subject),
    required_if(
        lambda rule: not rule.get("resourceRules") and not rule.get("nonResourceRules"),
        "",
        "at least one of resourceRules and nonResourceRules has to be non-empty",
    ),
    each("resourceRules", _RESOURCE_RULE),
    each("nonResourceRules", _URL_RULE),
)


def _fixed(document: Document, path: str, out: Causes) -> None:
    name, spec = part(document, "metadata").get("name"), part(document, "spec")
    if name in MANDATORY and spec != SCHEMAS[str(name)]:
        text = shown_as("flowcontrol.FlowSchemaSpec")(spec)
        out.append(invalid_value("spec", text, f"spec of '{name}' must equal the fixed value"))


_CONDITIONS = inside("status", unique("conditions", "type", at="type"), each("conditions", need("type")))
FLOW_SCHEMA = kind(
    _precedence,
    inside(
        "spec",
        _method,
        inside("priorityLevelConfiguration", need("name", dns_subdomain, detail="must reference a priority level")),
        each("rules", _POLICY_RULE),
    ),
    _fixed,
    _CONDITIONS,
    status=[lambda new, _old, out: _CONDITIONS(new, "", out)],
    metadata=("object",),
)

# --- PriorityLevelConfiguration ---------------------------------------------------------------------------------------


def _hand_size(document: Document, path: str, out: Causes) -> None:
    hand, queues = (int(str(document.get(name) or 0)) for name in ("handSize", "queues"))
    detail = ""
    if hand <= 0:
        detail = "must be positive"
    elif hand > queues:
        detail = f"should not be greater than queues ({queues})"
    elif sum(log2(queues - index) for index in range(min(hand, 64))) > _MAX_HASH_BITS:
        detail = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_MAX_HASH_BITS}"
    if detail:
        out.append(invalid_value(f"{path}.handSize", str(hand), detail))


_QUEUING = table(
    number("queueLengthLimit", at_least(1, "must be positive")),
    number("queues", at_least(1, "must be positive"), at_most(_MAX_QUEUES, f"must not be greater than {_MAX_QUEUES}")),
    _hand_size,
)
_RESPONSE = table(
    value("type", choice("Queue", "Reject")),
    when(
        lambda found: found.get("type") == "Reject",
        forbid("queuing", "must be nil if limited.limitResponse.type is not Limited"),
    ),
    when(
        lambda found: found.get("type") == "Queue",
        need_set("queuing", "must not be empty if limited.limitResponse.type is Limited"),
        optional("queuing", _QUEUING),
    ),
)
_LENDABLE = field(
    "lendablePercent",
    must(lambda found: isinstance(found, int) and 0 <= found <= 100, "must be between 0 and 100, inclusive"),
)
_SHARES = field("nominalConcurrencyShares", at_least(0, "must be a non-negative integer"))
_LIMITED = table(
    _SHARES,
    inside("limitResponse", _RESPONSE),
    _LENDABLE,
    field("borrowingLimitPercent", at_least(0, "if specified, must be a non-negative integer")),
)


def _exempt_name(document: Document, path: str, out: Causes) -> None:
    found = part(document, "spec").get("type") or ""
    if (part(document, "metadata").get("name") == "exempt") != (found == "Exempt"):
        out.append(invalid_value("spec.type", go_value(found), "must be 'Exempt' if and only if `name` is 'exempt'"))


def _fixed_level(document: Document, path: str, out: Causes) -> None:
    name, spec = part(document, "metadata").get("name"), part(document, "spec")
    if name not in MANDATORY:
        return
    ignored = "exempt" if name == "exempt" else ""
    given, fixed = ({key: each for key, each in of.items() if key != ignored} for of in (spec, LEVELS[str(name)]))
    but = " except the 'spec.exempt' field" if ignored else ""
    detail = f"spec of '{name}'{but} must equal the fixed value"
    if given != fixed:
        out.append(invalid_value("spec", shown_as("flowcontrol.PriorityLevelConfigurationSpec")(spec), detail))


_LEVEL: tuple[Rule, ...] = (
    when(
        lambda spec: spec.get("type") == "Exempt",
        forbid("limited", "must be nil if the type is not Limited"),
        optional("exempt", _SHARES, _LENDABLE),
    ),
    when(
        lambda spec: spec.get("type") == "Limited",
        forbid("exempt", "must be nil if the type is Limited"),
        need_set("limited", "must not be empty when type is Limited"),
        optional("limited", _LIMITED),
    ),
    value("type", choice("Exempt", "Limited")),
)
PRIORITY_LEVEL = kind(
    _exempt_name,
    inside("spec", *_LEVEL),
    _fixed_level,
    _CONDITIONS,
    status=[lambda new, _old, out: _CONDITIONS(new, "", out)],
    metadata=("object",),
)
KINDS = {
    "flowcontrol.apiserver.k8s.io/flowschemas": FLOW_SCHEMA,
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": PRIORITY_LEVEL,
}
