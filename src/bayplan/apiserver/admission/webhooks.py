"""Admission webhooks: match requests, build reviews, and evaluate the responses.

The responses come from other processes, so a request's first attempt raises `CallsNeededError`; see `Outgoing`. Audit
annotations in responses are ignored, because Bayplan has no audit log.

Sources: k8s.io/apiserver v0.36.3, pkg/admission/plugin/webhook;
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayplan.apiserver.admission.attributes import Attributes, Match, ObjectLister
from bayplan.apiserver.admission.conditions import Conditions, MatchProblem, compile_conditions
from bayplan.apiserver.admission.matching import in_namespaces, is_selected, match_rules
from bayplan.apiserver.admission.outgoing import Answer, Call, CallProblem, Outgoing
from bayplan.apiserver.admission.params import name_of
from bayplan.apiserver.admission.reinvocation import Reinvocation
from bayplan.apiserver.admission.requests import admission_request, admission_values
from bayplan.apiserver.admission.targets import Place, service_endpoint
from bayplan.apiserver.codec.bodies import BodyError, parse_json
from bayplan.apiserver.model.errors import ApiError, bad_request, forbidden, internal_error
from bayplan.apiserver.model.expressions import Scope
from bayplan.apiserver.patches.json_patch import JsonPatchError, patch_object
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

VALIDATING = "admissionregistration.k8s.io/validatingwebhookconfigurations"
MUTATING = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
_DEFAULT_TIMEOUT_S = 10
_VERSIONS = ("v1", "v1beta1")


class Webhook(NamedTuple):
    """A webhook of a configuration.

    Attributes:
        key: identifies the webhook: the name of the configuration, its own name, and its position.
        document: the webhook's entry in the configuration.
        conditions: the compiled match conditions.
    """

    key: tuple[str, str, int]
    document: Document
    conditions: Conditions

    @property
    def name(self) -> str:
        """The name of the webhook."""
        return self.key[1]

    @property
    def fails(self) -> bool:
        """Whether a failed call denies the request."""
        return self.document.get("failurePolicy") != "Ignore"


def compiled_webhooks(lister: ObjectLister, *, mutating: bool) -> list[Webhook]:
    """Return the webhooks of all configurations of one type, sorted by the name of the configuration."""
    scope = Scope(params=False, authorizer=True)
    return [
        Webhook((name_of(each), str(hook.get("name")), index), hook, compile_conditions(hook, scope))
        for each in lister.all(MUTATING if mutating else VALIDATING)
        for index, hook in enumerate(parts(each, "webhooks"))
    ]


# --- a request --------------------------------------------------------------------------------------------------------


def mutate(hooks: list[Webhook], attributes: Attributes, again: Reinvocation, outgoing: Outgoing) -> bool:
    """Call the mutating webhooks that match a request one after another; return whether any webhook changed the object.

    Raises:
        ApiError: a webhook denies the request, or fails and its failure policy is Fail.
        CallsNeededError: a response is missing.
    """
    changed = False
    silent: list[Webhook] = []
    for hook in hooks:
        match = _match(hook, attributes)
        if match is None or not again.is_due(hook.key):
            continue
        if _is_skipped(hook, attributes, outgoing):
            silent.append(hook)
            continue
        before = attributes.object
        try:
            _change(hook, match, attributes, outgoing, second=again.is_second)
        except CallProblem as problem:
            _tolerate(hook, problem)
        if attributes.object != before:
            changed = True
            again.require()
        if hook.document.get("reinvocationPolicy") == "IfNeeded":
            again.note(hook.key)
    _warn_of(silent, attributes)
    return changed


def validate(hooks: list[Webhook], attributes: Attributes, outgoing: Outgoing) -> None:
    """Call the validating webhooks that match a request, all at the same time.

    Raises:
        ApiError: a webhook denies the request, or fails and its failure policy is Fail.
        CallsNeededError: responses are missing.
    """
    asked = [(hook, match) for hook in hooks if (match := _match(hook, attributes)) is not None]
    silent = [hook for hook, _ in asked if _is_skipped(hook, attributes, outgoing)]
    calls: list[tuple[Webhook, Call]] = []
    first: ApiError | None = None
    for hook, match in asked:
        if hook in silent:
            continue
        try:
            calls.append((hook, _call(hook, match, attributes, second=False)))
        except (CallProblem, ApiError) as problem:
            first = first or _rejection(hook, problem)
    answers = outgoing.answers([call for _, call in calls])
    for (hook, _), answer in zip(calls, answers, strict=True):
        try:
            _allowed(hook, _response(answer, mutating=False), attributes)
        except (CallProblem, ApiError) as problem:
            first = first or _rejection(hook, problem)
    if first is not None:
        raise first
    _warn_of(silent, attributes)


def _is_skipped(hook: Webhook, attributes: Attributes, outgoing: Outgoing) -> bool:
    """Return whether to skip a webhook because calling it is not allowed.

    If other calls are allowed and its service is missing, the call fails instead.
    """
    client = part(hook.document, "clientConfig")
    return not outgoing.is_allowed(client) and not (outgoing.is_on and _missing_service(client, attributes))


def _missing_service(client: Document, attributes: Attributes) -> str:
    """Return the name of a webhook's service if that service does not exist, else ""."""
    service = part(client, "service")
    name = str(service.get("name") or "")
    found = attributes.lister.find("services", str(service.get("namespace") or ""), name) if name else None
    return "" if found is not None else name


def _rejection(hook: Webhook, problem: CallProblem | ApiError) -> ApiError | None:
    """Return the error for a validating webhook that denied the request or failed; None to ignore the failure."""
    if isinstance(problem, ApiError):
        return problem
    return _failed(hook, problem) if hook.fails else None


def _tolerate(hook: Webhook, problem: CallProblem) -> None:
    if hook.fails:
        raise _failed(hook, problem)


def _failed(hook: Webhook, problem: CallProblem) -> ApiError:
    return internal_error(f"failed calling webhook {quote(hook.name)}: {problem}")


def _warn_of(silent: list[Webhook], attributes: Attributes) -> None:
    """Add a warning with the names of matching webhooks that must not be called."""
    if silent:
        names = ", ".join(hook.name for hook in silent)
        attributes.warnings.append(f"not called, because --webhooks does not allow it: admission webhooks {names}")


def _match(hook: Webhook, attributes: Attributes) -> Match | None:
    """Return the resource and kind under which a request matches a webhook, or None if it does not match.

    Raises:
        ApiError: a match condition fails, or the namespace does not exist.
    """
    document = hook.document
    rules = match_rules(parts(document, "rules"), document.get("matchPolicy"), attributes)
    if rules is None or not is_selected(part(document, "objectSelector"), attributes):
        return None
    if not in_namespaces(part(document, "namespaceSelector"), attributes):
        return None
    if hook.conditions.expressions:
        try:
            if not hook.conditions.are_met(admission_values(attributes, rules, with_namespace=False)):
                return None
        except MatchProblem as problem:
            resource = attributes.resource
            raise forbidden(resource.name, resource.group, attributes.name, str(problem)) from None
    return rules


# --- calls ------------------------------------------------------------------------------------------------------------


def _call(hook: Webhook, match: Match, attributes: Attributes, *, second: bool) -> Call:
    """Return the call of a webhook for a request.

    Raises:
        ApiError: the request is a dry run, and the webhook has side effects.
        CallProblem: the webhook supports no known version of AdmissionReview, or its service does not exist.
    """
    document = hook.document
    if attributes.dry_run and document.get("sideEffects") not in ("None", "NoneOnDryRun"):
        raise bad_request(f"admission webhook {quote(hook.name)} does not support dry run")
    version = next((each for each in texts(document, "admissionReviewVersions") if each in _VERSIONS), "")
    if not version:
        text = (
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        )
        raise CallProblem(text)
    timeout = document.get("timeoutSeconds")
    timeout_s = timeout if isinstance(timeout, int) else _DEFAULT_TIMEOUT_S
    client = part(document, "clientConfig")
    missing = _missing_service(client, attributes)
    if missing:
        where = quote(service_endpoint(part(client, "service"), Place("", 0)).url(timeout_s))
        raise CallProblem(f"failed to call webhook: Post {where}: service {quote(missing)} not found")
    new, old = attributes.versions(match)
    request = admission_request(attributes, match)
    request |= {"object": new, "oldObject": old, "dryRun": attributes.dry_run, "options": attributes.options}
    review: Document = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
    return Call(
        name=f"{'second round of ' if second else ''}{'/'.join(map(str, hook.key))}",
        client=client,
        body=review,
        uid_path=("request", "uid"),
        timeout_s=timeout_s,
    )


class _Response(NamedTuple):
    allowed: bool
    status: Document
    warnings: Sequence[str]
    patch: bytes
    patch_type: str


def _response(answer: Answer, *, mutating: bool) -> _Response:
    """Return the response in a webhook's AdmissionReview.

    Raises:
        CallProblem: the call failed, or the response is invalid.
    """
    if answer.problem:
        raise CallProblem(f"failed to call webhook: {answer.problem}")
    review = answer.body
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallProblem("received invalid webhook response: webhook response was absent")
    versions = [str(each.get("apiVersion") or "").rpartition("/")[2] for each in (review, answer.sent)]
    if versions[0] != versions[1] and versions[0] in _VERSIONS and review.get("kind") == "AdmissionReview":
        conversion = " to ".join(f"({version}.AdmissionReview)" for version in versions)
        raise CallProblem(f"failed to call webhook: converting {conversion}: unknown conversion")
    if versions[1] == "v1":
        _check_v1(review, response, answer.uid, mutating=mutating)
    status = response.get("status")
    try:
        patch = base64.b64decode(str(response.get("patch") or ""), validate=True) if mutating else b""
    except (binascii.Error, ValueError) as problem:
        raise CallProblem(f"failed to call webhook: illegal base64 data: {problem}") from None
    found = status if isinstance(status, dict) else {}
    patch_type = str(response.get("patchType") or "JSONPatch")
    return _Response(response.get("allowed") is True, found, texts(response, "warnings"), patch, patch_type)


def _check_v1(review: Document, response: Document, uid: str, *, mutating: bool) -> None:
    prefix = "received invalid webhook response: "
    if response.get("uid", "") != uid:
        raise CallProblem(f"{prefix}expected response.uid={quote(uid)}, got {quote(str(response.get('uid') or ''))}")
    found = f"{review.get('apiVersion') or ''}, Kind={review.get('kind') or ''}"
    wanted = "admission.k8s.io/v1, Kind=AdmissionReview"
    if found != wanted:
        found = found if "/" in found else f"/{found}"
        raise CallProblem(f"{prefix}expected webhook response of {wanted}, got {found}")
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not mutating:
        for name, value in (("patch", patch or None), ("patchType", patch_type)):
            if value is not None:
                raise CallProblem(f"{prefix}validating webhook may not return response.{name}")
    elif patch and patch_type is None:
        raise CallProblem(f"{prefix}webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise CallProblem(f"{prefix}webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise CallProblem(f'{prefix}webhook returned invalid response.patchType of ""')


def _allowed(hook: Webhook, response: _Response, attributes: Attributes) -> None:
    """Add the warnings of a response to the request, and raise if the webhook denies the request.

    Raises:
        ApiError: the webhook denies the request.
    """
    attributes.warnings.extend(str(each) for each in response.warnings)
    if not response.allowed:
        raise denial(hook.name, response.status)


def denial(name: str, status: Mapping[str, object]) -> ApiError:
    """Return the error for a webhook's denial: the webhook's own Status, with upstream's prefix before the message."""
    code, message, reason = status.get("code"), str(status.get("message") or ""), str(status.get("reason") or "")
    denied = f"admission webhook {quote(name)} denied the request"
    why = message or reason
    details = status.get("details")
    metadata = status.get("metadata")
    return ApiError(
        code if isinstance(code, int) and code >= 400 else 400,
        f"{denied}: {why}" if why else f"{denied} without explanation",
        reason=reason,
        details=details if isinstance(details, dict) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
    )


def _change(hook: Webhook, match: Match, attributes: Attributes, outgoing: Outgoing, *, second: bool) -> None:
    """Call a mutating webhook, and apply its patch to the object of the request.

    Raises:
        ApiError: the webhook denies the request, or its patch cannot be applied.
        CallProblem: the call failed.
        CallsNeededError: the response is missing.
    """
    (answer,) = outgoing.answers([_call(hook, match, attributes, second=second)])
    response = _response(answer, mutating=True)
    _allowed(hook, response, attributes)
    if not response.patch:
        return
    operations = _operations(response.patch)
    if not operations:
        return
    if response.patch_type != "JSONPatch":
        raise CallProblem(f"unsupported patch type {quote(response.patch_type)}")
    current, _ = attributes.versions(match)
    if current is None:
        text = f"admission webhook {quote(hook.name)} attempted to modify the object, which is not supported for this operation"
        raise internal_error(text)
    try:
        attributes.replace_object(match, patch_object(current, operations))
    except JsonPatchError as problem:
        raise internal_error(str(problem)) from None


def _operations(patch: bytes) -> list[Document]:
    """Return the operations in a patch.

    Raises:
        CallProblem: the patch is not a list of objects.
    """
    prefix = "received undecodable patch in webhook response: "
    try:
        found = parse_json(patch).value
    except BodyError as problem:
        raise CallProblem(f"{prefix}{problem}") from None
    if found is None:
        return []
    if not isinstance(found, list):
        kind = "object" if isinstance(found, dict) else "string" if isinstance(found, str) else "number"
        raise CallProblem(f"{prefix}json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")
    for each in found:
        if not isinstance(each, dict):
            raise CallProblem(f"{prefix}json: cannot unmarshal into Go value of type jsonpatch.Operation")
    return found
