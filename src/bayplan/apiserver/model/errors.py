"""Errors of the API as Status objects, with kube-apiserver's messages, reasons, details and codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayplan.base.counted_nouns import plural
from bayplan.base.go_text.quoting import quote
from bayplan.base.plain_data import Document

REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
    406: "NotAcceptable", 409: "Conflict", 410: "Expired", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


class Cause(NamedTuple):
    """One cause of an error: the reason for programs, the message, and the path of the invalid field."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """An error response of the API.

    Args:
        code: the HTTP status code.
        message: the message for users.
        reason: the reason for programs; by default the one in `REASONS`, and empty if upstream has none.
        details: the details of the Status; None if upstream has no details.
        headers: additional headers of the response.
        metadata: the metadata of the Status; for code 410, it can contain a continue token.

    Attributes:
        warnings: the warnings that admission hooks returned before the error.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: Document | None = None,
        headers: Mapping[str, str] | None = None,
        metadata: Document | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.reason = REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.headers = dict(headers or {})
        self.metadata = metadata or {}
        self.warnings: list[str] = []
        super().__init__(message)

    def status(self) -> Document:
        """Return the error as a Status object."""
        status: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def object_details(name: str, group: str, kind: str, causes: Sequence[Cause] = ()) -> Document:
    """Return the details of an error about an object, without empty fields."""
    details: Document = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    if causes:
        # Convert equal causes once: there may be thousands, because causes about owner references have no index.
        documents = {cause: _document_of(cause) for cause in dict.fromkeys(causes)}
        details["causes"] = [documents[cause] for cause in causes]
    return details


def _document_of(cause: Cause) -> Document:
    return {key: value for key, value in cause._asdict().items() if value}


def qualified(resource: str, group: str) -> str:
    """Return a resource with its group: ``deployments.apps``, or ``pods`` in the core group."""
    return f"{resource}.{group}" if group else resource


def bad_request(message: str) -> ApiError:
    """Return the error 400 for a malformed request."""
    return ApiError(400, message)


def too_large(message: str) -> ApiError:
    """Return the error 413 for a request that is too large."""
    return ApiError(413, f"Request entity too large: {message}")


def not_found(resource: str, group: str, name: str) -> ApiError:
    """Return the error 404 for an object that does not exist."""
    return ApiError(
        404, f"{qualified(resource, group)} {quote(name)} not found", details=object_details(name, group, resource)
    )


def no_such_path() -> ApiError:
    """Return the error 404 for a path that names no resource."""
    return ApiError(404, "the server could not find the requested resource", details={})


def method_not_allowed() -> ApiError:
    """Return the error 405 for a verb that the resource does not support."""
    return ApiError(405, "the server does not allow this method on the requested resource", details={})


def already_exists(resource: str, group: str, name: str, *, going: bool = False, generated: bool = False) -> ApiError:
    """Return the error 409 for a name that is taken.

    Args:
        resource: the name of the resource.
        group: the group of the resource.
        name: the name.
        going: whether the existing object is being deleted.
        generated: whether the new object has a prefix for generated names.
    """
    text = f"{qualified(resource, group)} {quote(name)} already exists"
    details, headers = object_details(name, group, resource), {}
    if generated:
        text = f"{text}, the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
        headers = {"retry-after": "1"}
    if going:
        text = f"object is being deleted: {text}"
    return ApiError(409, text, reason="AlreadyExists", details=details, headers=headers)


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    """Return the error 409 for a request that the state of the object does not allow."""
    text = f"Operation cannot be fulfilled on {qualified(resource, group)} {quote(name)}: {why}"
    return ApiError(409, text, details=object_details(name, group, resource))


def modified(resource: str, group: str, name: str) -> ApiError:
    """Return the error 409 for a resource version that is not the object's current one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, group, name, why)


def forbidden(resource: str, group: str, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    """Return the error 403 for a request that admission denies."""
    text = f"{qualified(resource, group)} {quote(name)} is forbidden: {why}"
    return ApiError(403, text, details=object_details(name, group, resource, causes))


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """Return the error 422 for an object with invalid fields. The message lists all distinct causes."""
    distinct = dict.fromkeys(causes)
    texts = list(
        dict.fromkeys(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in distinct)
    )
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    text = f"{qualified(kind, group)} {quote(name)} is invalid: {listed}"
    return ApiError(422, text, details=object_details(name, group, kind, causes))


def internal(message: str) -> ApiError:
    """Return the error 500 as upstream creates it from a plain Go error: without reason or details."""
    return ApiError(500, message, reason="")


def internal_error(why: str) -> ApiError:
    """Return the error 500 as upstream's NewInternalError creates it: with reason and details."""
    text = f"Internal error occurred: {why}"
    return ApiError(500, text, reason="InternalError", details={"causes": [{"message": why}]})


# --- causes -----------------------------------------------------------------------------------------------------------


def required(field: str, detail: str = "") -> Cause:
    """Return the cause for a missing field."""
    return Cause("FieldValueRequired", "Required value" + (f": {detail}" if detail else ""), field)


def invalid_value(field: str, shown: str, detail: str) -> Cause:
    """Return the cause for an invalid value. `shown` is the value as Go prints it."""
    text = f"Invalid value: {shown}: {detail}" if detail else f"Invalid value: {shown}"
    return Cause("FieldValueInvalid", text, field)


def forbidden_value(field: str, detail: str) -> Cause:
    """Return the cause for a field that must not be set, or not to this value."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def duplicate(field: str, shown: str) -> Cause:
    """Return the cause for a value that occurs twice. `shown` is the value as Go prints it."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown}", field)


def not_supported(field: str, shown: str, supported: Sequence[str]) -> Cause:
    """Return the cause for a value that is not one of the supported values."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown}: supported values: {listed}", field)


def too_long(field: str, limit: int) -> Cause:
    """Return the cause for a value of more than `limit` bytes. A negative limit, which schemas may have, is not named."""
    if limit < 0:
        return Cause("FieldValueTooLong", "Too long: value is too long", field)
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} {plural('byte', limit)}", field)
