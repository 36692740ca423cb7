"""Facts about the API that its OpenAPI documents lack: fields of Go types, protobuf numbers, resources, table columns.

`scripts/make_api_facts.py` generates `facts.msgpack.gz` in this package, which is loaded on first use. List types,
merge keys, enums and required fields are in `bayplan.formats.schema`. Both use the type names of OpenAPI.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from bayplan.base.errors import InvariantError

TABLE = "facts.msgpack.gz"


class GoField(msgspec.Struct, frozen=True, gc=False):
    """A field of a Go struct.

    Attributes:
        name: the name in JSON; empty for an embedded struct.
        number: the protobuf field number; 0 if the field has none.
        wire: the protobuf wire type as in the struct tag: `bytes`, `varint`, `fixed64`.
        type: the name of the struct in OpenAPI, or Go's basic type: `string`, `int32`, `int64`, `bool`, `float64`,
            `[]uint8`.
        go_type: the whole type as Go prints it, e.g. `*v1.PodSecurityContext`.
        containers: `pointer`, `list` and `map` around `type`, from the outside in.
        omit_empty: whether JSON omits an empty value.
        omit_zero: whether JSON omits a zero struct.
        inline: whether the fields of `type` are part of the enclosing object.
    """

    name: str = ""
    number: int = 0
    wire: str = ""
    type: str = ""
    go_type: str = ""
    containers: tuple[str, ...] = ()
    omit_empty: bool = False
    omit_zero: bool = False
    inline: bool = False


class ResourceFacts(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """An entry of an APIResourceList, with the fields in the API's order.

    A subresource has a name like `pods/status`.
    """

    name: str
    singular_name: str
    namespaced: bool
    group: str = ""
    version: str = ""
    kind: str
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""


class ColumnFacts(msgspec.Struct, frozen=True, gc=False):
    """A column of a table. `kubectl get` shows columns of priority 0 without `-o wide`."""

    name: str
    type: str
    format: str = ""
    priority: int = 0
    description: str = ""


class ApiFacts(msgspec.Struct, frozen=True, gc=False):
    """All recorded facts.

    Attributes:
        version: the body of `/version`.
        types: the fields of each type in Go's order, by the type's name in OpenAPI.
        kinds: the type of each kind, by a key like `apps/v1/Deployment`.
        columns: the table columns, by a key like `apps.Deployment` (first label of the group, `core` for the core
            group).
        resources: the resources and subresources of each group version in order, by a path like `/apis/apps/v1`.
        groups: the names of the groups, in discovery order.
        paths: the paths that `/` lists.
        checks: the names of the checks of `livez` and `readyz`.
    """

    version: dict[str, str]
    types: dict[str, tuple[GoField, ...]]
    kinds: dict[str, str]
    columns: dict[str, tuple[ColumnFacts, ...]]
    resources: dict[str, tuple[ResourceFacts, ...]]
    groups: tuple[str, ...]
    paths: tuple[str, ...]
    checks: dict[str, tuple[str, ...]]


@cache
def api_facts() -> ApiFacts:
    """Return the recorded facts, which are loaded on first use.

    Raises:
        InvariantError: the file in the package is damaged.
    """
    packed = resources.files("bayplan.apiserver.schema").joinpath(TABLE).read_bytes()
    try:
        return msgspec.msgpack.decode(gzip.decompress(packed), type=ApiFacts)
    except (msgspec.MsgspecError, OSError, EOFError) as problem:
        raise InvariantError(
            f"bayplan/apiserver/schema/{TABLE} is damaged ({problem}); install Bayplan again"
        ) from problem


def internal_package(group: str, kind: str) -> str:
    """Return the name of the Go package with upstream's internal type of a kind; events have one type in two groups."""
    return "core" if kind == "Event" else group.partition(".")[0] or "core"


class PlacedField(msgspec.Struct, frozen=True, gc=False):
    """A field of a struct, or of a struct embedded in it.

    Attributes:
        position: the position among the fields of the struct. Checks run in this order.
        owner: the name in OpenAPI of the struct that declares the field.
        facts: the declared facts.
        containers: the ``list`` and ``map`` types around the innermost type.
        is_struct: whether the innermost type is a struct with fields.
    """

    position: int
    owner: str
    facts: GoField
    containers: tuple[str, ...]
    is_struct: bool


@cache
def placed_fields(type_name: str) -> Mapping[str, PlacedField]:
    """Return the fields of a struct by JSON name, including those of embedded structs; empty for other types."""
    found: dict[str, PlacedField] = {}
    _place(type_name, found)
    return found


def _place(type_name: str, found: dict[str, PlacedField]) -> None:
    types = api_facts().types
    for facts in types.get(type_name, ()):
        if facts.inline:
            _place(facts.type, found)
            continue
        containers = tuple(each for each in facts.containers if each != "pointer")
        placed = PlacedField(len(found), type_name, facts, containers, bool(types.get(facts.type)))
        found.setdefault(facts.name, placed)
