"""Validation rules of admissionregistration.k8s.io: webhook configurations, admission policies and bindings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, required
from bayplan.apiserver.validation.conditions import conditions
from bayplan.apiserver.validation.engine import (
    Causes,
    Check,
    Rule,
    choice,
    each,
    field,
    go_value,
    inside,
    items,
    kind,
    must,
    need,
    need_set,
    one_of,
    optional,
    table,
    too_many,
    value,
)
from bayplan.apiserver.validation.expressions import check_expression
from bayplan.apiserver.validation.formats import dns_subdomain, path_segment, qualified_name
from bayplan.apiserver.validation.hook_clients import client_service, hook_url, review_versions
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.cel.types import BOOL, DYN, NULL, STRING, list_of
from bayplan.objects.names import check_dns1035_label, check_dns1123_subdomain
from bayplan.objects.selectors import quote

if TYPE_CHECKING:
    from bayplan.apiserver.model.expressions import Scope

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_MAX_CONDITIONS, _MAX_ANNOTATIONS, _MAX_VALUE_BYTES = 64, 20, 5 * 1024

# --- rules about requests ---------------------------------------------------------------------------------------------


def _alone(what: str) -> Check:
    def check(found: object, path: str, out: Causes) -> None:
        names = found if isinstance(found, list) else []
        if len(names) > 1 and "*" in names:
            out.append(invalid_value(path, go_value(names), f"if '*' is present, must not specify other {what}"))

    return check


def _no_empty(found: object, path: str, out: Causes) -> None:
    for index, name in enumerate(found if isinstance(found, list) else ()):
        if not name:
            out.append(required(f"{path}[{index}]"))


def _resources(found: object, path: str, out: Causes) -> None:
    names = [str(name) for name in found] if isinstance(found, list) else []
    every_subresource: set[str] = set()
    every_resource: set[str] = set()
    bare = False
    for index, name in enumerate(names):
        here = f"{path}[{index}]"
        if not name:
            out.append(required(here))
            continue
        resource, slash, subresource = name.partition("/")
        if not slash:
            bare = name != "*"
            continue
        if resource in every_subresource:
            out.append(invalid_value(here, quote(name), f"if '{resource}/*' is present, must not specify {name}"))
        if subresource in every_resource:
            out.append(invalid_value(here, quote(name), f"if '*/{subresource}' is present, must not specify {name}"))
        if subresource == "*":
            every_subresource.add(resource)
        if resource == "*":
            every_resource.add(subresource)
    if len(names) > 1 and "*/*" in names:
        out.append(invalid_value(path, go_value(names), "if '*/*' is present, must not specify other resources"))
    if "*" in names and bare:
        detail = "if '*' is present, must not specify other resources without subresources"
        out.append(invalid_value(path, go_value(names), detail))


_REQUEST_RULE = table(
    need("operations", _alone("operations"), items(one_of(*_OPERATIONS))),
    need("apiGroups", _alone("API groups")),
    need("apiVersions", _alone("API versions"), _no_empty),
    need("resources", _resources),
    field("scope", one_of("*", "Cluster", "Namespaced")),
)

# --- webhooks ---------------------------------------------------------------------------------------------------------


def _qualified_hook(found: object, path: str, out: Causes) -> None:
    text = str(found)
    problems = check_dns1123_subdomain(text)
    if problems:
        out.append(invalid_value(path, quote(text), ",".join(problems)))
    elif text.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        out.append(invalid_value(path, quote(text), detail))


_HOOK_SERVICE = client_service(namespace_first=True)


def _client(config: Document, path: str, out: Causes) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        out.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        hook_url(url, f"{path}.url", out)
    else:
        optional("service", _HOOK_SERVICE)(config, path, out)


def _scope(*, params: bool = False) -> Scope:
    """Return the scope of expressions that cannot use policy variables."""
    from bayplan.apiserver.model.expressions import Scope  # Imports the CEL package.

    return Scope(params=params)


def _match_conditions(document: Document, path: str, out: Causes, scope: Scope | None = None) -> None:
    found, here = parts(document, "matchConditions"), f"{path}.matchConditions"
    if len(found) > _MAX_CONDITIONS:
        out.append(too_many(here, len(found), _MAX_CONDITIONS))
    names: set[object] = set()
    for index, condition in enumerate(found):
        text, name = str(condition.get("expression") or "").strip(), condition.get("name")
        if not text:
            out.append(required(f"{here}[{index}].expression"))
        else:
            check_expression(text, f"{here}[{index}].expression", out, scope or _scope(), BOOL)
        need("name", qualified_name)(condition, f"{here}[{index}]", out)
        if name and name in names:
            out.append(duplicate(f"{here}[{index}].name", go_value(name)))
        names.add(name)


def _side_effects(hook: Document, path: str, out: Causes) -> None:
    if hook.get("sideEffects") is None:
        out.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    else:
        one_of("None", "NoneOnDryRun")(hook["sideEffects"], f"{path}.sideEffects", out)


def _review_versions(hook: Document, path: str, out: Causes) -> None:
    versions, here = texts(hook, "admissionReviewVersions"), f"{path}.admissionReviewVersions"
    if not versions:
        out.append(required(here, "must specify one of v1, v1beta1"))
    else:
        review_versions(versions, here, out)


_TIMEOUT = must(
    lambda found: isinstance(found, int) and 1 <= found <= 30, "the timeout value must be between 1 and 30 seconds"
)


def _hook(*extra: Rule) -> Rule:
    return table(
        need("name", _qualified_hook),
        each("rules", _REQUEST_RULE),
        field("failurePolicy", one_of("Fail", "Ignore")),
        field("matchPolicy", one_of("Equivalent", "Exact")),
        _side_effects,
        field("timeoutSeconds", _TIMEOUT),
        optional("namespaceSelector", LABEL_SELECTOR),
        optional("objectSelector", LABEL_SELECTOR),
        *extra,
        inside("clientConfig", _client),
    )


def _hooks(rule: Rule) -> Rule:
    def run(document: Document, path: str, out: Causes) -> None:
        names: set[object] = set()
        for index, hook in enumerate(parts(document, "webhooks")):
            here, name = f"webhooks[{index}]", hook.get("name")
            rule(hook, here, out)
            _match_conditions(hook, here, out)
            _review_versions(hook, here, out)
            if name and name in names:
                out.append(duplicate(f"{here}.name", go_value(name)))
            names.add(name)

    return run


# --- policies ---------------------------------------------------------------------------------------------------------


def _param_version(found: object, path: str, out: Causes) -> None:
    text = str(found)
    if text.count("/") != 1 and text != "v1":
        detail = f"unexpected GroupVersion string: {text}" if text.count("/") > 1 else "group must be specified"
        group, version = "", text
        if text.count("/") > 1:
            out.append(invalid_value(path, quote(text), detail))
            return
    else:
        group, _, version = text.rpartition("/")
    problems = check_dns1123_subdomain(group) if group else ()
    if problems:
        out.append(invalid_value(path, quote(group), ",".join(problems)))
    if not version:
        out.append(invalid_value(path, quote(text), "version must be specified"))
    else:
        problems = check_dns1035_label(version)
        if problems:
            out.append(invalid_value(path, quote(version), ",".join(problems)))


def _param_kind(found: object, path: str, out: Causes) -> None:
    problems = check_dns1035_label(str(found).lower())
    if problems:
        detail = "may have mixed case, but should otherwise match: " + ",".join(problems)
        out.append(invalid_value(path, quote(str(found)), detail))


_PARAM = table(need("apiVersion", _param_version), need("kind", _param_kind))


def _resource_names(rule: Document, path: str, out: Causes) -> None:
    names = texts(rule, "resourceNames")
    for index, name in enumerate(names):
        here = f"{path}.resourceNames[{index}]"
        path_segment(name, here, out)
        if name in names[:index]:
            out.append(duplicate(here, quote(name)))


_NAMED_RULE = table(_resource_names, _REQUEST_RULE)
_MATCH = table(
    need_set("matchPolicy"),
    field("matchPolicy", one_of("Equivalent", "Exact")),
    need_set("namespaceSelector"),
    optional("namespaceSelector", LABEL_SELECTOR),
    need_set("objectSelector"),
    optional("objectSelector", LABEL_SELECTOR),
    each("resourceRules", _NAMED_RULE),
    each("excludeResourceRules", _NAMED_RULE),
)
_FAILURE = table(need_set("failurePolicy"), field("failurePolicy", one_of("Fail", "Ignore")))


def _constraints(spec: Document, path: str, out: Causes) -> None:
    if spec.get("matchConstraints") is None:
        out.append(required(f"{path}.matchConstraints"))
        return
    inside("matchConstraints", _MATCH, need("resourceRules"))(spec, path, out)


def _variables(spec: Document, path: str, out: Causes, *, mutates: bool) -> Scope:
    """Check the variables of a policy, and return the scope for expressions after them.

    A mutating policy has `variables` even if it declares none.
    """
    scope = _scope(params=spec.get("paramKind") is not None)
    if mutates or parts(spec, "variables"):
        scope = scope._replace(variables=())
    for index, variable in enumerate(parts(spec, "variables")):
        here, name, text = (
            f"{path}.variables[{index}]",
            str(variable.get("name") or ""),
            str(variable.get("expression") or ""),
        )
        if not name.strip():
            out.append(required(f"{here}.name", "name is not specified"))
        elif not re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name):
            out.append(invalid_value(f"{here}.name", quote(name), "must be a valid CEL identifier"))
        if not text.strip():
            out.append(required(f"{here}.expression", "expression is not specified"))
        else:
            kind = check_expression(text, f"{here}.expression", out, scope)
            scope = scope.with_variable(name, DYN if kind is None else kind)
    return scope


def _one_line(document: Document, name: str, path: str, out: Causes) -> None:
    text = str(document.get(name) or "")
    if text and not text.strip():
        out.append(invalid_value(f"{path}.{name}", quote(text), "must be non-empty if specified"))
    elif "\n" in text.strip():
        out.append(invalid_value(f"{path}.{name}", quote(text), "must not contain line breaks"))


def _validation(rule: Document, path: str, scope: Scope, out: Causes) -> None:
    text, message = str(rule.get("expression") or ""), str(rule.get("messageExpression") or "")
    if not text.strip():
        out.append(required(f"{path}.expression", "expression is not specified"))
    else:
        check_expression(text, f"{path}.expression", out, scope, BOOL)
    if message and not message.strip():
        out.append(invalid_value(f"{path}.messageExpression", quote(message), "must be non-empty if specified"))
    elif message:
        message_scope = scope._replace(authorizer=False)
        check_expression(message, f"{path}.messageExpression", out, message_scope, STRING)
    _one_line(rule, "message", path, out)
    field("reason", one_of("Forbidden", "Invalid", "RequestEntityTooLarge"))(rule, path, out)


def _audit_annotations(policy: Document, scope: Scope, out: Causes) -> None:
    spec, name, here = part(policy, "spec"), str(part(policy, "metadata").get("name") or ""), "spec.auditAnnotations"
    found = parts(spec, "auditAnnotations")
    if len(found) > _MAX_ANNOTATIONS:
        out.append(invalid_value(here, go_value(found), f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"))
    keys: set[object] = set()
    for index, annotation in enumerate(found):
        key, text = str(annotation.get("key") or ""), str(annotation.get("valueExpression") or "").strip()
        if name:
            qualified_name(f"{name}/{key}", f"{here}[{index}].key", out)
        else:
            out.append(invalid_value(f"{here}[{index}].key", quote(key), "requires metadata.name be non-empty"))
        at = f"{here}[{index}].valueExpression"
        if not text:
            out.append(required(at, "valueExpression is not specified"))
        elif len(text.encode()) > _MAX_VALUE_BYTES:
            out.append(required(at, f"must not exceed {_MAX_VALUE_BYTES} bytes in length"))
        else:
            check_expression(text, at, out, scope, STRING, NULL)
        if key in keys:
            out.append(duplicate(f"{here}[{index}].key", quote(key)))
        keys.add(key)


def _policy_start(spec: Document, out: Causes) -> None:
    _FAILURE(spec, "spec", out)
    optional("paramKind", _PARAM)(spec, "spec", out)
    _constraints(spec, "spec", out)


def _validating_policy(policy: Document, path: str, out: Causes) -> None:
    spec = part(policy, "spec")
    _policy_start(spec, out)
    _match_conditions(spec, "spec", out, _scope(params=spec.get("paramKind") is not None))
    scope = _variables(spec, "spec", out, mutates=False)
    if not parts(spec, "validations") and not parts(spec, "auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        out.extend((required("spec.validations", detail), required("spec.auditAnnotations", detail)))
        return
    for index, rule in enumerate(parts(spec, "validations")):
        _validation(rule, f"spec.validations[{index}]", scope, out)
    _audit_annotations(policy, scope, out)


def _mutations(spec: Document, scope: Scope, out: Causes) -> None:
    from bayplan.apiserver.model.expressions import JSON_PATCH, OBJECT  # Imports the CEL package.

    patching = scope._replace(patches=True)
    fields = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}
    if not parts(spec, "mutations"):
        out.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(parts(spec, "mutations")):
        here, chosen = f"spec.mutations[{index}]", str(mutation.get("patchType") or "")
        choice("ApplyConfiguration", "JSONPatch")(chosen, f"{here}.patchType", out)
        for name in sorted(fields, key=lambda each: each != chosen) if chosen in fields else ():
            field_name = fields[name]
            inner = mutation.get(field_name)
            at = f"{here}.{field_name}"
            if name == chosen and not isinstance(inner, dict):
                out.append(required(at, f"must be specified when patchType is {chosen}"))
            elif name != chosen and inner is not None:
                detail = f"must not be specified when patchType is {chosen}"
                out.append(invalid_value(at, quote(f"{{{field_name}}}"), detail))
            elif isinstance(inner, dict):
                text = str(inner.get("expression") or "")
                if not text.strip():
                    out.append(required(f"{at}.expression"))
                elif name == chosen:
                    wanted = list_of(JSON_PATCH) if name == "JSONPatch" else OBJECT
                    check_expression(text, f"{at}.expression", out, patching, wanted)


def _mutated_operations(name: str, spec: Document, out: Causes) -> None:
    """Check that the rules of a mutating policy or its binding match no deletions, which cannot be changed."""
    for rule in parts(part(spec, name), "resourceRules"):
        for operation in texts(rule, "operations"):
            one_of(*_MUTATING_OPERATIONS)(operation, f"spec.{name}.resourceRules.operations", out)


def _mutating_policy(policy: Document, path: str, out: Causes) -> None:
    spec = part(policy, "spec")
    _policy_start(spec, out)
    _mutated_operations("matchConstraints", spec, out)
    _match_conditions(spec, "spec", out, _scope(params=spec.get("paramKind") is not None))
    scope = _variables(spec, "spec", out, mutates=True)
    _mutations(spec, scope, out)
    value("reinvocationPolicy", choice("IfNeeded", "Never"))(spec, "spec", out)


# --- bindings ---------------------------------------------------------------------------------------------------------


def _param_ref(reference: Document, path: str, out: Causes) -> None:
    name, selector = reference.get("name"), reference.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        path_segment(name, f"{path}.name", out)
        if selector is not None:
            out.append(forbidden_value(f"{path}.name", both))
    if selector is not None:
        optional("selector", LABEL_SELECTOR)(reference, path, out)
        if name:
            out.append(forbidden_value(f"{path}.selector", both))
    if not name and selector is None:
        out.append(required(path, "one of name or selector must be specified"))
    value("parameterNotFoundAction", choice("Deny", "Allow"))(reference, path, out)


def _actions(spec: Document, path: str, out: Causes) -> None:
    actions, here = texts(spec, "validationActions"), f"{path}.validationActions"
    if not actions:
        out.append(required(here, "at least one validation action is required"))
    for index, action in enumerate(actions):
        one_of("Audit", "Deny", "Warn")(action, f"{here}[{index}]", out)
        if action in actions[:index]:
            out.append(duplicate(f"{here}[{index}]", quote(action)))
    if "Deny" in actions and "Warn" in actions:
        detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API "
        detail += "response and headers serves no purpose)"
        out.append(invalid_value(here, go_value(actions), detail))


_BINDING = (need("policyName", dns_subdomain), optional("paramRef", _param_ref), optional("matchResources", _MATCH))
_ALONE = ("object",)


def _policy_status(new: Document, _old: Document, out: Causes) -> None:
    status = part(new, "status")
    for index, warning in enumerate(parts(part(status, "typeChecking"), "expressionWarnings")):
        here = f"status.typeChecking.expressionWarnings[{index}]"
        out.extend(required(f"{here}.{name}") for name in ("warning", "fieldRef") if not warning.get(name))
    conditions(status, "status", out)


_GROUP = "admissionregistration.k8s.io/"
KINDS = {
    f"{_GROUP}validatingwebhookconfigurations": kind(_hooks(_hook()), metadata=_ALONE),
    f"{_GROUP}mutatingwebhookconfigurations": kind(
        _hooks(_hook(field("reinvocationPolicy", one_of("IfNeeded", "Never")))), metadata=_ALONE
    ),
    f"{_GROUP}validatingadmissionpolicies": kind(_validating_policy, metadata=_ALONE, status=[_policy_status]),
    f"{_GROUP}mutatingadmissionpolicies": kind(_mutating_policy, metadata=_ALONE),
    f"{_GROUP}validatingadmissionpolicybindings": kind(inside("spec", *_BINDING, _actions), metadata=_ALONE),
    f"{_GROUP}mutatingadmissionpolicybindings": kind(
        inside("spec", *_BINDING, lambda spec, _path, out: _mutated_operations("matchResources", spec, out)),
        metadata=_ALONE,
    ),
}
