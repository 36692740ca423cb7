"""Which victims of a preemption are equally important, according to the objects of the case, not to the engine."""

from bayplan.conformance.cases import Json, JsonObject

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that exist in every cluster."""


def victim_ranks(case: JsonObject) -> dict[str, tuple[int, str]]:
    """Return priority and start time of every pod of a cycle case, by ``namespace/name``.

    A pod with a higher priority is more important, then one that started earlier; upstream orders victims only by these
    two. Pods with the same rank may be in either order. Pods without a start time have "", so they are equal.
    """
    objects = [each for key in ("objects", "pods") for each in _list(case.get(key))]
    classes: dict[str, int] = dict(SYSTEM_PRIORITIES)
    default = 0
    for each in objects:
        if each.get("kind") == "PriorityClass":
            value = each.get("value")
            number = value if isinstance(value, int) else 0
            classes[_text(_inner(each, "metadata"), "name")] = number
            if each.get("globalDefault") is True:
                default = number
    ranks = {}
    for each in objects:
        if each.get("kind") == "Pod":
            metadata, spec = _inner(each, "metadata"), _inner(each, "spec")
            priority = spec.get("priority")
            if not isinstance(priority, int):
                priority = classes.get(_text(spec, "priorityClassName"), default)
            key = f"{_text(metadata, 'namespace') or 'default'}/{_text(metadata, 'name')}"
            ranks[key] = (priority, _text(_inner(each, "status"), "startTime"))
    return ranks


def _list(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _inner(value: JsonObject, key: str) -> JsonObject:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _text(value: JsonObject, key: str) -> str:
    inner = value.get(key)
    return inner if isinstance(inner, str) else ""
