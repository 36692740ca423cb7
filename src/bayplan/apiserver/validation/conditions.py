"""Validation rules of ``metav1.Condition``, the type of conditions in the status of most newer kinds."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import duplicate, invalid_value, not_supported, required, too_long
from bayplan.apiserver.validation.engine import Causes
from bayplan.base.plain_data import Document, parts
from bayplan.objects.names import check_qualified_name
from bayplan.objects.selectors import quote

_STATUSES = ("False", "True", "Unknown")
_MAX_REASON_BYTES, _MAX_MESSAGE_BYTES = 1024, 32 * 1024
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', "
    "and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
    f"'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)


def conditions(status: Document, path: str, out: Causes) -> None:
    """Check the conditions of a status."""
    seen: set[str] = set()
    for index, condition in enumerate(parts(status, "conditions")):
        here, name = f"{path}.conditions[{index}]", str(condition.get("type") or "")
        if name in seen:
            out.append(duplicate(f"{here}.type", quote(name)))
        seen.add(name)
        _condition(condition, name, here, out)


def _condition(condition: Document, name: str, path: str, out: Causes) -> None:
    out.extend(invalid_value(f"{path}.type", quote(name), problem) for problem in check_qualified_name(name))
    status, generation = str(condition.get("status") or ""), condition.get("observedGeneration")
    if status not in _STATUSES:
        out.append(not_supported(f"{path}.status", quote(status), _STATUSES))
    if isinstance(generation, int) and generation < 0:
        out.append(
            invalid_value(f"{path}.observedGeneration", str(generation), "must be greater than or equal to zero")
        )
    if not condition.get("lastTransitionTime"):
        out.append(required(f"{path}.lastTransitionTime"))
    reason = str(condition.get("reason") or "")
    if not reason:
        out.append(required(f"{path}.reason"))
    else:
        if not re.fullmatch(_REASON, reason):
            out.append(invalid_value(f"{path}.reason", quote(reason), _REASON_TEXT))
        if len(reason.encode()) > _MAX_REASON_BYTES:
            out.append(too_long(f"{path}.reason", _MAX_REASON_BYTES))
    if len(str(condition.get("message") or "").encode()) > _MAX_MESSAGE_BYTES:
        out.append(too_long(f"{path}.message", _MAX_MESSAGE_BYTES))
