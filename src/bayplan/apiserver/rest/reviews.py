"""Token reviews and access reviews: answered, never stored. Every user is allowed everything.

Sources: pkg/registry/authorization, pkg/registry/authentication, pkg/apis/authorization/validation of v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.fields import managed
from bayplan.apiserver.model.errors import ApiError, Cause, bad_request, invalid, invalid_value, method_not_allowed
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.selectors import parse_fields, parse_labels
from bayplan.apiserver.patches.key_order import in_go_order
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import Target
from bayplan.apiserver.rest.decoding import decode_request
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import write_options
from bayplan.apiserver.rest.service_tokens import review_token
from bayplan.apiserver.rest.updates import check_namespace
from bayplan.apiserver.validation.engine import go_value
from bayplan.apiserver.validation.selectors import review_selector
from bayplan.base.plain_data import Document, part, parts, texts

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_RULES: Document = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review(backend: Backend, info: RequestInfo, request: Request) -> Document:
    """Return the review in a request with its result in `status`.

    Raises:
        ApiError: the review is invalid, or reviews of this kind are not supported.
    """
    resource = info.resource
    options = write_options(request, "CreateOptions")
    target = Target(resource.api_version, resource.kind, resource.type_name, resource)
    document = decode_request(target, request, options.validation).document
    head: Document = {"kind": resource.kind, "apiVersion": resource.api_version}
    metadata, spec = part(document, "metadata"), part(document, "spec")
    if info.namespace:
        check_namespace(info, metadata)
        document["metadata"] = metadata = {**metadata, "namespace": info.namespace}
    else:
        document["metadata"] = metadata = {name: value for name, value in metadata.items() if name != "namespace"}
    if resource.name == "selfsubjectreviews":
        status = {"userInfo": request.user.document()}
        return {**head, "metadata": {"creationTimestamp": backend.now()}, "status": status}
    if resource.name == "selfsubjectrulesreviews":
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        return {**head, "metadata": {}, "spec": {}, "status": _RULES}
    if resource.name == "tokenreviews":
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        _set_managers(backend, info, document, options)
        return {**head, **document, "status": review_token(backend, document)}
    if resource.name.endswith("accessreviews"):
        _set_managers(backend, info, document, options)
        causes = _causes(resource.name, part(document, "metadata"), spec)
        if causes:
            raise invalid("", resource.group, "", causes)
        access: Document = {"allowed": True}
        ignored = _ignored_selectors(part(spec, "resourceAttributes"))
        if ignored:
            access["evaluationError"] = "; ".join(ignored)
        return {**head, **document, "status": access}
    raise method_not_allowed()


def _set_managers(backend: Backend, info: RequestInfo, document: Document, options: WriteOptions) -> None:
    zero, owner = writing.zero_document(info.resource), writing.ownership(backend, info, options)
    managers = managed.after_create(owner, zero, document, {})
    metadata = document["metadata"] = dict(part(document, "metadata"))
    if managers:
        metadata["managedFields"] = managed.encode(managers)


def _ignored_selectors(attributes: Document) -> list[str]:
    """Return a message for each valid selector that an authorizer could not use, or could use only in part.

    Source: pkg/registry/authorization/util/helpers.go v1.36.3.
    """
    found = []
    for kind in ("fieldSelector", "labelSelector"):
        selector = part(attributes, kind)
        requirements = parts(selector, "requirements")
        usable = [_is_usable(each, of_labels=kind == "labelSelector") for each in requirements]
        if all(usable) and _is_readable(kind, str(selector.get("rawSelector") or "")):
            continue
        extent = "partially ignored" if any(usable) else "ignored"
        found.append(f"spec.resourceAttributes.{kind} {extent} due to parse error")
    return found


def _is_usable(requirement: Document, *, of_labels: bool) -> bool:
    operator = requirement.get("operator")
    if of_labels:
        return operator in ("In", "NotIn", "Exists", "DoesNotExist")
    return operator in ("In", "NotIn") and len(texts(requirement, "values")) == 1


def _is_readable(kind: str, raw: str) -> bool:
    try:
        if kind == "labelSelector":
            parse_labels(raw)
        else:
            parse_fields(raw, lambda _: "")
    except ApiError:
        return False
    return True


def _causes(name: str, metadata: Document, spec: Document) -> list[Cause]:
    """Return the validation errors of an access review."""
    causes: list[Cause] = []
    of_resource, of_path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if of_resource is not None and of_path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_value("spec.nonResourceAttributes", _attributes(of_path), text))
    if of_resource is None and of_path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid_value("spec.resourceAttributes", "null", text))
    if not name.startswith("self") and not spec.get("user") and not spec.get("groups"):
        causes.append(invalid_value("spec.user", '""', "at least one of user or group must be specified"))
    for kind in ("fieldSelector", "labelSelector"):
        review_selector(part(spec, "resourceAttributes").get(kind), f"spec.resourceAttributes.{kind}", causes)
    local = name.startswith("local")
    ignored = ("managedFields", "namespace") if local else ("managedFields",)
    if any(value for field, value in metadata.items() if field not in ignored):
        text = "must be empty except for namespace" if local else "must be empty"
        causes.append(invalid_value("metadata", go_value(in_go_order(_OBJECT_META, metadata)), text))
    if local:
        causes += _local_causes(str(metadata.get("namespace") or ""), of_resource, of_path)
    return causes


def _local_causes(namespace: str, of_resource: object, of_path: object) -> list[Cause]:
    """Return the validation errors that only a LocalSubjectAccessReview can have."""
    causes: list[Cause] = []
    if isinstance(of_resource, dict) and (of_resource.get("namespace") or "") != namespace:
        wanted = go_value(of_resource.get("namespace") or "")
        causes.append(invalid_value("spec.resourceAttributes.namespace", wanted, "must match metadata.namespace"))
    if of_path is not None:
        text = "disallowed on this kind of request"
        causes.append(invalid_value("spec.nonResourceAttributes", _attributes(of_path), text))
    return causes


def _attributes(of_path: object) -> str:
    """Return the attributes of a non-resource path as Go prints its internal struct."""
    found = of_path if isinstance(of_path, dict) else {}
    return go_value({"Path": found.get("path") or "", "Verb": found.get("verb") or ""})
