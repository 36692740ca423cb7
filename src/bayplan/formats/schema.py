"""Facts about the types of the Kubernetes API: which fields there are, and how lists, maps and patches treat them.

The table `schema.msgpack.gz` beside this module is made by `scripts/make_schema.py` from the OpenAPI documents of the
pinned release. It holds names and types, list types and map keys, strategic merge keys, enums, required fields,
resources and scopes, and the defaults that OpenAPI v3 gives for core, apps, batch, scheduling, policy, storage,
resource, coordination and events (v1). It is loaded on first use.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from bayplan.base.errors import InvariantError

TABLE = "schema.msgpack.gz"


class FieldFacts(msgspec.Struct, frozen=True, gc=False):
    """What the API knows about one field of a type.

    Attributes:
        type: name of the type at the core: one of `Schema.types`, or `string`, `integer`, `number`, `boolean`,
            `object` (any JSON object), `any`.
        containers: `list` and `map` from the outside in: `("map", "list")` is a map of lists of `type`.
        format: OpenAPI's format, e.g. `int32`, `byte`, `date-time`.
        list_type: `atomic`, `set` or `map` (server-side apply), or empty, which means atomic.
        list_map_keys: the keys of a list of type `map`.
        map_type: `atomic` or empty, which means granular.
        merge_key: key of a strategic merge patch.
        strategy: of a strategic merge patch: empty (replace), `merge`, `retainKeys` or `merge,retainKeys`.
        enum: allowed values, or empty.
        required: whether OpenAPI calls the field required.
        default: what OpenAPI v3 calls the default, or UNSET. An empty one ("", 0, {}) says that the field is shown
            when empty, and is no default in the sense of the API server's defaulting.
    """

    type: str
    containers: tuple[str, ...] = ()
    format: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    merge_key: str = ""
    strategy: str = ""
    enum: tuple[str, ...] = ()
    required: bool = False
    default: object = msgspec.UNSET


class UnionFacts(msgspec.Struct, frozen=True, gc=False):
    """A group of fields of which one may be set; `discriminator` names the field that tells which, if any does."""

    discriminator: str
    fields: tuple[str, ...]


class TypeFacts(msgspec.Struct, frozen=True, gc=False):
    """What the API knows about one type.

    Attributes:
        fields: by their names in documents.
        scalar: for a type without fields, what it is in JSON: `string`, `object` (any object) or `any`.
        format: e.g. `int-or-string`, `date-time`.
        map_type: `atomic` where server-side apply takes the whole object as one value.
        unions: see `UnionFacts`.
    """

    fields: dict[str, FieldFacts]
    scalar: str = ""
    format: str = ""
    map_type: str = ""
    unions: tuple[UnionFacts, ...] = ()


class KindFacts(msgspec.Struct, frozen=True, gc=False):
    """The type of a kind; its resource (plural, empty for lists and for what is no resource) and its scope."""

    type: str
    resource: str = ""
    namespaced: bool = False


class Schema(msgspec.Struct, frozen=True, gc=False):
    """The whole table.

    Attributes:
        release: of Kubernetes, e.g. `v1.36.3`.
        kinds: by `apiVersion/kind`, e.g. `v1/Pod`, `apps/v1/Deployment`; lists (`v1/PodList`) too.
        types: by OpenAPI's name, e.g. `io.k8s.api.core.v1.PodSpec`.
    """

    release: str
    kinds: dict[str, KindFacts]
    types: dict[str, TypeFacts]


@cache
def schema() -> Schema:
    """Return the table; it is read from the package the first time.

    Raises:
        InvariantError: the table in the package is damaged.
    """
    packed = resources.files("bayplan.formats").joinpath(TABLE).read_bytes()
    try:
        return msgspec.msgpack.decode(gzip.decompress(packed), type=Schema)
    except (msgspec.MsgspecError, OSError, EOFError) as problem:
        raise InvariantError(f"bayplan/formats/{TABLE} is damaged ({problem}); install Bayplan again") from problem


def find_kind(api_version: str, kind: str) -> KindFacts | None:
    """Return the facts of a kind, or None where the pinned release does not serve it."""
    return schema().kinds.get(f"{api_version}/{kind}")


# --- unknown fields ---------------------------------------------------------------------------------------------------


class _Plan:
    """A type, made ready for a walk: its field names, and for fields that hold objects, how to reach them."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        # field -> None (nothing to look at inside), or (containers, plan of the objects at the core)
        self.fields: dict[str, tuple[tuple[str, ...], _Plan] | None] = {}


@cache
def _plan(type_name: str) -> _Plan:
    return _make_plan(type_name, {})


def _make_plan(type_name: str, made: dict[str, _Plan]) -> _Plan:
    """Make the plan of a type; types refer to one another in circles (JSONSchemaProps), so `made` comes along."""
    if type_name in made:
        return made[type_name]
    plan = made[type_name] = _Plan()
    types = schema().types
    for name, facts in types[type_name].fields.items():
        core = types.get(facts.type)
        inner = (facts.containers, _make_plan(facts.type, made)) if core is not None and not core.scalar else None
        plan.fields[name] = inner
    return plan


def unknown_fields(document: Mapping[str, object]) -> list[str]:
    """Return the JSON paths of the fields of a document that the pinned release does not know, in document order.

    A kind that the release does not serve has no table: the answer is empty for it. Values are not looked at:
    something that is no object where an object belongs is the business of `bayplan.objects.kinds.decode`. Paths look
    like `$.spec.containers[0].imagePullPolice`; the fields inside an unknown field are not listed again.
    """
    facts = schema().kinds.get(f"{document.get('apiVersion')}/{document.get('kind')}")
    if facts is None or _is_clean(_plan(facts.type), document):
        return []
    found: list[str] = []
    _list_unknown(_plan(facts.type), document, "$", found)
    return found


def known_fields(document: Mapping[str, object], path: str) -> list[str]:
    """Return the fields that may stand beside the unknown field at `path` of a document, for a did-you-mean.

    Args:
        document: as given to `unknown_fields`.
        path: one of its answers.
    """
    facts = schema().kinds.get(f"{document.get('apiVersion')}/{document.get('kind')}")
    if facts is None:
        return []
    plan, value, at = _plan(facts.type), document, "$"
    while True:
        for _, item, here, inner in _inside(plan, value, at):
            if here == path:
                return sorted(plan.fields)
            if inner is not None and isinstance(item, Mapping) and path.startswith((f"{here}.", f"{here}[")):
                plan, value, at = inner, item, here
                break
        else:
            return []


def _is_clean(plan: _Plan, value: Mapping[str, object]) -> bool:
    """Say whether a document has no unknown field. The fast pass: no paths, and most documents end here."""
    fields = plan.fields
    for name, item in value.items():
        try:
            inner = fields[name]
        except KeyError:
            return False
        if inner is None:
            continue
        containers, core = inner
        if not containers:
            if isinstance(item, dict) and not _is_clean(core, item):
                return False
        elif containers == ("list",):
            if isinstance(item, list):
                for element in item:
                    if isinstance(element, dict) and not _is_clean(core, element):
                        return False
        else:
            for _, element in _cores(containers, item, ""):
                if isinstance(element, dict) and not _is_clean(core, element):
                    return False
    return True


def _cores(containers: tuple[str, ...], value: object, path: str) -> list[tuple[str, object]]:
    """Return the values at the core of nested lists and maps, with their paths."""
    if not containers:
        return [(path, value)]
    cores: list[tuple[str, object]] = []
    if containers[0] == "list" and isinstance(value, list):
        for index, item in enumerate(value):
            cores += _cores(containers[1:], item, f"{path}[{index}]")
    elif containers[0] == "map" and isinstance(value, Mapping):
        for key, item in value.items():
            cores += _cores(containers[1:], item, f"{path}.{key}")
    return cores


def _inside(plan: _Plan, value: Mapping[str, object], path: str) -> list[tuple[str, object, str, _Plan | None]]:
    """Return (field, value, path, plan of the value) of all fields; an unknown field has no plan, nor has a scalar."""
    parts: list[tuple[str, object, str, _Plan | None]] = []
    for name, item in value.items():
        here = f"{path}.{name}"
        inner = plan.fields.get(name)
        if inner is None:
            parts.append((name, item, here, None))
        else:
            parts += [(name, element, at, inner[1]) for at, element in _cores(inner[0], item, here)]
    return parts


def _list_unknown(plan: _Plan, value: Mapping[str, object], path: str, found: list[str]) -> None:
    for name, item, here, inner in _inside(plan, value, path):
        if name not in plan.fields:
            found.append(here)
        elif inner is not None and isinstance(item, Mapping):
            _list_unknown(inner, item, here, found)
