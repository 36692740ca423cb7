"""Validation rules of the status of a CertificateSigningRequest: conditions, approval and certificate."""

from __future__ import annotations

import base64
import re

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes, Change
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

_ALL, _TRUE = ("False", "True", "Unknown"), ("True",)
_TRUE_TYPES = ("Approved", "Denied", "Failed")
_DECISIONS = ("Approved", "Denied")
_BLOCK = re.compile(r"-----BEGIN ([^-]+)-----\s*(.*?)-----END \1-----", re.DOTALL)
_PATH = "status.conditions"


def _of(status: Document, kind: str) -> list[Document]:
    return [each for each in parts(status, "conditions") if each.get("type") == kind]


def _conditions(status: Document, before: Document, out: Causes) -> None:
    """Check the conditions, but tolerate kinds of errors that the old conditions already have."""
    old = parts(before, "conditions")
    old_types = [str(each.get("type") or "") for each in old]
    both_before = all(name in old_types for name in _DECISIONS)
    twice_before = len(set(old_types)) < len(old_types)
    seen: list[str] = []
    for index, condition in enumerate(parts(status, "conditions")):
        path, name = f"{_PATH}[{index}]", str(condition.get("type") or "")
        if not name and "" not in old_types:
            out.append(required(f"{path}.type"))
        value, allowed = str(condition.get("status") or ""), _TRUE if name in _TRUE_TYPES else _ALL
        if not value:
            out.append(required(f"{path}.status"))
        elif value not in allowed:
            out.append(not_supported(f"{path}.status", quote(value), allowed))
        if not both_before and name in _DECISIONS and any(each in seen for each in _DECISIONS if each != name):
            out.append(invalid_value(_PATH, quote(name), "Approved and Denied conditions are mutually exclusive"))
        if name in seen and not twice_before:
            out.append(duplicate(f"{path}.type", quote(name)))
        seen.append(name)


def _certificate(status: Document, before: Document, out: Causes) -> None:
    text = str(status.get("certificate") or "")
    if not text or text == before.get("certificate"):
        return
    blocks = _BLOCK.findall(base64.b64decode(text).decode("latin-1"))
    problem = ""
    for kind, body in blocks:
        if kind != "CERTIFICATE":
            problem = f"only CERTIFICATE PEM blocks are allowed, found {quote(kind)}"
            break
        if ":" in body.partition("\n\n")[0]:
            problem = "no PEM block headers are permitted"
            break
    if not blocks:
        problem = "must contain at least one CERTIFICATE PEM block"
    if problem:
        out.append(invalid_value("status.certificate", quote("<certificate data>"), problem))


def _request_change(*, approves: bool) -> Change:
    def check(new: Document, old: Document, out: Causes) -> None:
        status, before = part(new, "status"), part(old, "status")
        _conditions(status, before, out)
        _certificate(status, before, out)
        for name in _TRUE_TYPES:
            if len(_of(status, name)) < len(_of(before, name)):
                out.append(forbidden_value(_PATH, f"updates may not remove a condition of type {quote(name)}"))
        for name in () if approves else _DECISIONS:
            if len(_of(status, name)) > len(_of(before, name)):
                out.append(forbidden_value(_PATH, f"updates may not add a condition of type {quote(name)}"))
        was = before.get("certificate")
        if not approves and was and status.get("certificate") != was:
            out.append(forbidden_value("status.certificate", "updates may not modify existing certificate content"))

    return check


STATUS, APPROVAL = _request_change(approves=False), _request_change(approves=True)
