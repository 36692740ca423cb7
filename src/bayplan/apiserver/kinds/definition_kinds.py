"""The strategy of CustomResourceDefinitions: names that follow from others, and the status that says they are served."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.kinds.strategy import Context, Strategy, part, parts, texts
from bayplan.apiserver.rest.errors import Cause, forbidden_value, invalid_value
from bayplan.base.go_regexp import RegexpError, WorkBudget, WorkBudgetExceeded
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote


class DefinitionStrategy(Strategy):
    """Definitions are accepted at once: what controllers of upstream find out a moment later is there from the start."""

    counts_generations = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Fill in names, and say that they are accepted."""
        super().prepare_create(context, document)
        _fill_in(document)
        now = context.cluster.now()
        document["status"] = {
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
            ],
            "acceptedNames": dict(part(document, "spec", "names")),
            "storedVersions": _stored(document),
        }

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Keep the status in step with names and versions."""
        super().prepare_update(context, new, old)
        _fill_in(new)
        status = {**part(new, "status")}
        before = texts(status, "storedVersions")
        status["acceptedNames"] = dict(part(new, "spec", "names"))
        status["storedVersions"] = before + [name for name in _stored(new) if name not in before]
        new["status"] = status

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check the name and the patterns of schemas."""
        return [*_check_name(document), *check_patterns(document)]


def _check_name(document: Document) -> list[Cause]:
    name, names = str(part(document, "metadata").get("name") or ""), part(document, "spec", "names")
    if name == f"{names.get('plural')}.{part(document, 'spec').get('group')}":
        return []
    return [invalid_value("metadata.name", quote(name), 'must be spec.names.plural+"."+spec.group')]


def check_patterns(document: Document) -> list[Cause]:
    """Return which patterns of the schemas are no regular expressions.

    Where all versions have one schema, upstream checks it as that of the whole definition.
    """
    versions = parts(part(document, "spec"), "versions")
    schemas = [part(version, "schema", "openAPIV3Schema") for version in versions]
    budget = WorkBudget()
    causes: list[Cause] = []
    if schemas and all(schema == schemas[0] for schema in schemas):
        return _check_schema(schemas[0], "spec.validation.openAPIV3Schema", budget)
    for index, schema in enumerate(schemas):
        causes += _check_schema(schema, f"spec.versions[{index}].schema.openAPIV3Schema", budget)
    return causes


def _check_schema(schema: Document, path: str, budget: WorkBudget) -> list[Cause]:
    causes: list[Cause] = []
    try:
        for field, pattern in _patterns(schema, path):
            try:
                budget.compile(pattern)
            except RegexpError as problem:
                why = f"must be a valid regular expression, but isn't: {problem}"
                causes.append(invalid_value(field, quote(pattern), why))
    except WorkBudgetExceeded:
        causes.append(forbidden_value(path, "the regular expressions of the schema take more work than a request may"))
    return sorted(causes, key=lambda cause: (cause.field, cause.message))


def _patterns(schema: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the patterns of a schema and of all schemas in it, with their fields."""
    waiting = [(schema, path)]
    while waiting:
        inner, at = waiting.pop()
        if not isinstance(inner, dict):
            continue
        pattern = inner.get("pattern")
        if isinstance(pattern, str) and pattern:
            yield f"{at}.pattern", pattern
        waiting += [(each, f"{at}.properties[{name}]") for name, each in part(inner, "properties").items()]
        waiting += [(inner.get(name), f"{at}.{name}") for name in ("items", "additionalProperties", "not")]
        for name in ("allOf", "anyOf", "oneOf"):
            waiting += [(each, f"{at}.{name}[{index}]") for index, each in enumerate(parts(inner, name))]


def _fill_in(document: Document) -> None:
    names = part(document, "spec", "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"


def _stored(document: Document) -> list[str]:
    return [str(version.get("name")) for version in parts(part(document, "spec"), "versions") if version.get("storage")]


def _condition(name: str, reason: str, message: str, now: str) -> Document:
    return {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
