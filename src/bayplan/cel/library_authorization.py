"""The functions of ``authorizer``, which allow every request.

Source: https://kubernetes.io/docs/reference/using-api/cel/ (authorizer library).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from bayplan.cel.problems import RunProblem
from bayplan.objects.names import check_dns1123_label, check_dns1123_subdomain


class Check(msgspec.Struct, frozen=True):
    """A step of an authorization check.

    Attributes:
        kind: ``Authorizer``, ``PathCheck``, ``GroupCheck``, ``ResourceCheck`` or ``Decision``.
    """

    kind: str

    @property
    def cel_type_name(self) -> str:
        """The name of the CEL type."""
        return f"kubernetes.authorization.{self.kind}"


AUTHORIZER = Check("Authorizer")
RESOURCE_CHECK = Check("ResourceCheck")
_DECISION = Check("Decision")


def _step(wanted: str, result: Check, empty: str = "") -> Callable[[object, object], Check]:
    """Return a function of a step and a string that returns `result`.

    If `empty` is given, the function fails for a blank string, with an error that calls the string by this name.
    """

    def step(check: object, text: object) -> Check:
        _expect(check, wanted)
        if not isinstance(text, str):
            raise TypeError
        if empty and not text.strip():
            raise RunProblem(f"{empty} must not be empty")
        return result

    return step


def _expect(check: object, *kinds: str) -> None:
    if not isinstance(check, Check) or check.kind not in kinds:
        raise TypeError


def _service_account(check: object, namespace: object, name: object) -> Check:
    _expect(check, "Authorizer")
    if not isinstance(namespace, str) or not isinstance(name, str):
        raise TypeError
    if check_dns1123_subdomain(name):
        raise RunProblem("Invalid service account name")
    if check_dns1123_label(namespace):
        raise RunProblem("Invalid service account namespace")
    return AUTHORIZER


def _check(check: object, verb: object) -> Check:
    _expect(check, "PathCheck", "ResourceCheck")
    if not isinstance(verb, str):
        raise TypeError
    return _DECISION


def _answer(value: object) -> Callable[[object], object]:
    def answer(decision: object) -> object:
        _expect(decision, "Decision")
        return value

    return answer


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "path": _step("Authorizer", Check("PathCheck"), "path"),
    "group": _step("Authorizer", Check("GroupCheck")),
    "serviceAccount": _service_account,
    "resource": _step("GroupCheck", RESOURCE_CHECK, "resource"),
    **dict.fromkeys(
        ("subresource", "namespace", "name", "fieldSelector", "labelSelector"), _step("ResourceCheck", RESOURCE_CHECK)
    ),
    "check": _check,
    "errored": _answer(False),
    "error": _answer(""),
    "allowed": _answer(True),
    "reason": _answer(""),
}
