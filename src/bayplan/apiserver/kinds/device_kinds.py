"""The strategy of device classes, claims and their templates: selectors that are too many, too long, or can't be compiled."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.kinds.strategy import Context, Strategy, part, parts
from bayplan.apiserver.rest.errors import Cause, invalid_value, too_long
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

MAX_SELECTORS = 32
MAX_EXPRESSION = 10 * 1024
MAX_COMPILED = 64 * 1024
"""Characters of expressions that one write compiles, about half a second; the scheduler compiles the rest when it needs it."""
_INTERNAL = ("unexpected compilation error", "program instantiation failed")


class DeviceStrategy(Strategy):
    """Device classes, claims, and templates of claims."""

    returns_deleted = True

    def __init__(self, *, counts_generations: bool = False) -> None:
        self.counts_generations = counts_generations

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check the selectors of a new object."""
        causes: list[Cause] = []
        left = MAX_COMPILED
        for field, selectors in _selector_lists(document):
            if len(selectors) > MAX_SELECTORS:
                text = f"Too many: {len(selectors)}: must have at most {MAX_SELECTORS} items"
                causes.append(Cause("FieldValueTooMany", text, field))
                continue
            for index, selector in enumerate(selectors):
                expression = part(selector, "cel").get("expression")
                if isinstance(expression, str):
                    left -= len(expression)
                    causes += _check_expression(expression, f"{field}[{index}].cel.expression", compiles=left >= 0)
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check selectors that have changed."""
        if list(_selector_lists(new)) == list(_selector_lists(old)):
            return []
        return self.validate(context, new)


def _selector_lists(document: Document) -> Iterator[tuple[str, list[Document]]]:
    """Yield the lists of selectors in a class, a claim or a template, with their fields."""
    spec = part(document, "spec")
    yield "spec.selectors", parts(spec, "selectors")
    for prefix, devices in (
        ("spec.devices", part(spec, "devices")),
        ("spec.spec.devices", part(spec, "spec", "devices")),
    ):
        for index, request in enumerate(parts(devices, "requests")):
            field = f"{prefix}.requests[{index}]"
            yield f"{field}.exactly.selectors", parts(part(request, "exactly"), "selectors")
            for number, alternative in enumerate(parts(request, "firstAvailable")):
                yield f"{field}.firstAvailable[{number}].selectors", parts(alternative, "selectors")


def _check_expression(expression: str, field: str, *, compiles: bool) -> list[Cause]:
    if len(expression.encode("utf-8", "replace")) > MAX_EXPRESSION:
        return [too_long(field, MAX_EXPRESSION)]
    if not compiles:
        return []
    # The language takes a while to import, and most clusters have no devices.
    from bayplan.plugins.dynamic_resources.cel.device_environment import compile_device_expression
    from bayplan.plugins.dynamic_resources.cel.problems import CompileProblem

    try:
        compile_device_expression(expression)
    except CompileProblem as problem:
        if str(problem).startswith(_INTERNAL):
            return [Cause("InternalError", f"Internal error: {problem}", field)]
        return [invalid_value(field, quote(expression), str(problem))]
    return []
