"""Matching requests with hooks: rules, equivalent resources, namespace selectors and object selectors.

Sources: k8s.io/apiserver v0.36.3, pkg/admission/plugin/webhook/predicates and policy/matching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.apiserver.admission.attributes import CREATE, UPDATE, Attributes, Match, kind_of
from bayplan.apiserver.model.errors import not_found
from bayplan.apiserver.model.resources import Resource
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import compile_selector_document

EXEMPT_GROUP = "admissionregistration.k8s.io"
_EXEMPT = frozenset(
    (
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    )
)
_NEVER_POLICED = frozenset(("tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews",
                            "selfsubjectrulesreviews", "selfsubjectreviews"))  # fmt: skip


def is_exempt(attributes: Attributes) -> bool:
    """Return whether a request writes a hook's own configuration, for which hooks are never called."""
    return attributes.kind.group == EXEMPT_GROUP and attributes.kind.kind in _EXEMPT


def is_never_policed(attributes: Attributes) -> bool:
    """Return whether a request is exempt from policies: reviews, which are not stored, and writes of hooks' configurations."""
    return attributes.resource.name in _NEVER_POLICED or is_exempt(attributes)


def match_rules(rules: Sequence[Document], policy: object, attributes: Attributes) -> Match | None:
    """Return the resource and kind under which a request matches one of the rules, or None if it matches none.

    Args:
        rules: rules with operations, groups, versions, resources, and possibly resource names.
        policy: ``Exact``, or ``Equivalent`` if rules also match other versions of the requested resource.
        attributes: the request.
    """
    for rule in rules:
        if _meets(rule, attributes, attributes.resource):
            return Match(attributes.resource, attributes.kind)
    if policy != "Equivalent":
        return None
    others = [each for each in equivalents(attributes) if each is not attributes.resource]
    for rule in rules:
        for other in others:
            if _meets(rule, attributes, other):
                return Match(other, kind_of(other, attributes.subresource))
    return None


def equivalents(attributes: Attributes) -> list[Resource]:
    """Return all resources that serve the objects of the requested resource, in discovery order."""
    resource, subresource = attributes.resource, attributes.subresource
    found = (each for each in attributes.lister.registry.all() if each.table == resource.table)
    return [each for each in found if not subresource or subresource in each.subresources]


def _meets(rule: Document, attributes: Attributes, resource: Resource) -> bool:
    names = texts(rule, "resourceNames")
    return (
        _in_scope(rule.get("scope"), attributes, resource)
        and _has(texts(rule, "operations"), attributes.operation)
        and _has(texts(rule, "apiGroups"), resource.group)
        and _has(texts(rule, "apiVersions"), resource.version)
        and any(_names(each, resource.name, attributes.subresource) for each in texts(rule, "resources"))
        and (not names or attributes.name in names)
    )


def _in_scope(scope: object, attributes: Attributes, resource: Resource) -> bool:
    if scope in (None, "", "*"):
        return True
    cluster = not attributes.namespace or (resource.group, resource.name) == ("", "namespaces")
    return cluster if scope == "Cluster" else not cluster


def _has(items: Sequence[str], wanted: str) -> bool:
    return "*" in items or wanted in items


def _names(pattern: str, resource: str, subresource: str) -> bool:
    wanted, _, inner = pattern.partition("/")
    return wanted in ("*", resource) and inner in ("*", subresource)


def in_namespaces(selector: Document, attributes: Attributes) -> bool:
    """Return whether the namespace of a request matches a selector. Cluster-scoped objects always match.

    Raises:
        ApiError: the namespace does not exist.
    """
    if not attributes.namespace and attributes.resource.name != "namespaces":
        return True
    if not _is_set(selector):
        return True
    of_itself = attributes.resource.name == "namespaces" and not attributes.subresource
    if of_itself and attributes.operation in (CREATE, UPDATE):
        return compile_selector_document(selector).matches(_labels(attributes.object))
    namespace = attributes.lister.find("namespaces", "", attributes.namespace)
    if namespace is None:
        raise not_found("namespaces", "", attributes.namespace)
    return compile_selector_document(selector).matches(_labels(namespace))


def is_selected(selector: Document, attributes: Attributes) -> bool:
    """Return whether the new or the old object matches a selector."""
    if not _is_set(selector):
        return True
    found = (attributes.object, attributes.old)
    return any(each is not None and compile_selector_document(selector).matches(_labels(each)) for each in found)


def _is_set(selector: Document) -> bool:
    return bool(part(selector, "matchLabels") or parts(selector, "matchExpressions"))


def _labels(document: Document | None) -> Mapping[str, str]:
    return {key: str(value) for key, value in part(document or {}, "metadata", "labels").items()}


def match_criteria(criteria: Document, attributes: Attributes, rules: str = "resourceRules") -> Match | None:
    """Return the resource and kind under which a request matches the constraints of a policy or binding, or None.

    Args:
        criteria: the constraints.
        attributes: the request.
        rules: the field of the constraints that contains the rules.

    Raises:
        ApiError: the namespace of the request does not exist.
    """
    if not in_namespaces(part(criteria, "namespaceSelector"), attributes):
        return None
    if not is_selected(part(criteria, "objectSelector"), attributes):
        return None
    policy = criteria.get("matchPolicy")
    if match_rules(parts(criteria, "excludeResourceRules"), policy, attributes) is not None:
        return None
    wanted = parts(criteria, rules)
    if not wanted:
        return Match(attributes.resource, attributes.kind)
    return match_rules(wanted, policy, attributes)
