"""Validation rules of the kinds of rbac.authorization.k8s.io."""

from __future__ import annotations

from bayplan.apiserver.model.errors import invalid_value, not_supported
from bayplan.apiserver.validation.engine import (
    Causes,
    Rule,
    each,
    go_value,
    immutable,
    inside,
    invalid_if,
    kind,
    need,
    one_of,
    optional,
    table,
    value,
    when,
)
from bayplan.apiserver.validation.formats import dns_subdomain, path_segment
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR, selector_is_valid
from bayplan.base.plain_data import Document

_GROUP = "rbac.authorization.k8s.io"


def _policy_rule(*, namespaced: bool) -> Rule:
    resources = ("apiGroups", "resources", "resourceNames")
    return table(
        need("verbs", detail="verbs must contain at least one value"),
        when(
            lambda rule: bool(rule.get("nonResourceURLs")),
            invalid_if(lambda _: namespaced, "nonResourceURLs", "namespaced rules cannot apply to non-resource URLs"),
            invalid_if(
                lambda rule: any(rule.get(name) for name in resources),
                "nonResourceURLs",
                "rules cannot apply to both regular resources and non-resource URLs",
            ),
            otherwise=(
                need("apiGroups", detail="resource rules must supply at least one api group"),
                need("resources", detail="resource rules must supply at least one resource"),
            ),
        ),
    )


def _subject_kind(document: Document, path: str, out: Causes) -> None:
    group, kinds = document.get("apiGroup") or "", ("ServiceAccount", "User", "Group")
    if document.get("kind") == "ServiceAccount":
        if document.get("name"):
            dns_subdomain(document["name"], f"{path}.name", out)
        if group:
            out.append(not_supported(f"{path}.apiGroup", go_value(group), ("",)))
    elif document.get("kind") in ("User", "Group"):
        one_of(_GROUP)(group, f"{path}.apiGroup", out)
    else:
        out.append(not_supported(f"{path}.kind", go_value(document.get("kind") or ""), kinds))


def _binding(*kinds: str, namespaced: bool) -> tuple[Rule, ...]:
    namespace = when(lambda subject: not namespaced and subject.get("kind") == "ServiceAccount", need("namespace"))
    return (
        inside("roleRef", value("apiGroup", one_of(_GROUP)), value("kind", one_of(*kinds)), need("name", path_segment)),
        each("subjects", need("name"), _subject_kind, namespace),
    )


def _usable_selector(selector: Document, path: str, out: Causes) -> None:
    if not selector_is_valid(selector):
        out.append(invalid_value(path, "null", "invalid label selector."))


_ROLE_REF = immutable("roleRef", "cannot change roleRef", show=shown_as("rbac.RoleRef"))
_AGGREGATION = table(
    need("clusterRoleSelectors", detail="at least one clusterRoleSelector required if aggregationRule is non-nil"),
    each("clusterRoleSelectors", LABEL_SELECTOR, _usable_selector),
)
KINDS = {
    "rbac.authorization.k8s.io/roles": kind(
        each("rules", _policy_rule(namespaced=True)), metadata=("change", "object")
    ),
    "rbac.authorization.k8s.io/clusterroles": kind(
        each("rules", _policy_rule(namespaced=False)),
        optional("aggregationRule", _AGGREGATION),
        metadata=("change", "object"),
    ),
    "rbac.authorization.k8s.io/rolebindings": kind(
        *_binding("Role", "ClusterRole", namespaced=True), after=[_ROLE_REF], metadata=("change", "object")
    ),
    "rbac.authorization.k8s.io/clusterrolebindings": kind(
        *_binding("ClusterRole", namespaced=False), after=[_ROLE_REF], metadata=("change", "object")
    ),
}
