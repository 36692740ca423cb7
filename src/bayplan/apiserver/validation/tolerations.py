"""Validation rules of tolerations and taints."""

from __future__ import annotations

from bayplan.apiserver.model.errors import Cause, invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.base.plain_data import Document, parts
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.selectors import quote

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ANY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_SECONDS = "effect must be 'NoExecute' when `tolerationSeconds` is set"


def check_toleration(document: Document, path: str, out: Causes) -> None:
    """Check one toleration of a pod or class."""
    get = document.get
    key, found = str(get("key") or ""), str(get("value") or "")
    operator, effect = str(get("operator") or ""), str(get("effect") or "")
    if key:
        out.extend(invalid_value(f"{path}.key", quote(key), problem) for problem in check_qualified_name(key))
    elif operator != "Exists":
        out.append(invalid_value(f"{path}.operator", quote(operator), _ANY_KEY))
    if get("tolerationSeconds") is not None and effect != "NoExecute":
        out.append(invalid_value(f"{path}.effect", quote(effect), _SECONDS))
    if operator in ("", "Equal"):
        problems = check_label_value(found)
        if problems:
            out.append(invalid_value(f"{path}.operator", quote(found), ";".join(problems)))
    elif operator == "Exists":
        if found:
            out.append(
                invalid_value(f"{path}.operator", quote(found), "value must be empty when `operator` is 'Exists'")
            )
    elif operator in ("Lt", "Gt"):
        out.append(not_supported(f"{path}.operator", quote(operator), ("Equal", "Exists", "Lt", "Gt")))
    else:
        out.append(not_supported(f"{path}.operator", quote(operator), ("Equal", "Exists")))
    if effect and effect not in EFFECTS:
        out.append(not_supported(f"{path}.effect", quote(effect), EFFECTS))


def tolerations(document: Document, path: str, out: Causes) -> None:
    """Check the tolerations in a pod's spec."""
    for index, toleration in enumerate(parts(document, "tolerations")):
        check_toleration(toleration, f"{path}.tolerations[{index}]", out)


def taints(document: Document, out: Causes) -> None:
    """Check the taints in a node's spec. Upstream reports them below `metadata.taints`."""
    check_taints(parts(document, "taints"), "metadata.taints", out)


def check_taints(node_taints: list[Document], path: str, out: Causes) -> None:
    """Check the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node_taints):
        here, key = f"{path}[{index}]", str(taint.get("key") or "")
        found, effect = str(taint.get("value") or ""), str(taint.get("effect") or "")
        out.extend(invalid_value(f"{here}.key", quote(key), problem) for problem in check_qualified_name(key))
        problems = check_label_value(found)
        if problems:
            out.append(invalid_value(f"{here}.value", quote(found), ";".join(problems)))
        if not effect:
            out.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            out.append(not_supported(f"{here}.effect", quote(effect), EFFECTS))
        if (key, effect) in seen:
            shown = shown_as("core.Taint")(taint)
            detail = "taints must be unique by key and effect pair"
            out.append(Cause("FieldValueDuplicate", f"Duplicate value: {shown}: {detail}", here))
        seen.add((key, effect))
