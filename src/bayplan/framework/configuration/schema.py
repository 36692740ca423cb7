"""The wire format of a struct: JSON names, Go types, and the meaning of an absent field.

The structs have the form that the scheduler uses: no pointers if there is a default, which is the default of the
attribute. The Go type and the JSON name of a field follow from its annotation and its name; `Wire` states the
exceptions. Upstream has two versions of every struct: ``v1``, used in files, and the internal one without defaults,
which a file can request with the version ``__internal``.
"""

from types import NoneType
from typing import Annotated, ClassVar, Final, TypeAlias, get_args, get_origin, get_type_hints

import msgspec


class _EmptyList(tuple[object, ...]):
    """The type of `EMPTY_LIST`."""

    __slots__ = ()


EMPTY_LIST: Final[tuple[()]] = _EmptyList()  # type: ignore[assignment]
"""A list that the text sets to empty. Only its identity distinguishes it from ``()``, the value of an absent list."""


class Scalar(msgspec.Struct, frozen=True):
    """A Go type that is decoded as a whole.

    Attributes:
        kind: how it is decoded, a key of `_ZEROS`.
        name: its Go name in error texts.
        internal_name: its Go name in the internal version, if different.
        bits: the size of an integer.
    """

    kind: str
    name: str
    internal_name: str = ""
    bits: int = 0


class Pointer(msgspec.Struct, frozen=True):
    """A pointer; if `v1_only`, a plain value in the internal version."""

    element: "GoType"
    v1_only: bool = False


class Slice(msgspec.Struct, frozen=True):
    """A list of elements."""

    element: "GoType"


class Struct(msgspec.Struct, frozen=True):
    """Base of the structs that correspond to a Go struct of the same name.

    The internal version of such a struct is another Go type, in the package ``config``: its fields have Go names, but
    no JSON names. Types of the Kubernetes API have only one version.
    """

    go_package: ClassVar[str] = "v1"


class Nested(msgspec.Struct, frozen=True):
    """A struct as a value."""

    struct: type[object]


GoType: TypeAlias = Scalar | Pointer | Slice | Nested

BOOL: Final = Scalar("bool", "bool")
STRING: Final = Scalar("string", "string")
INT32: Final = Scalar("int", "int32", bits=32)
INT64: Final = Scalar("int", "int64", bits=64)
BYTES: Final = Scalar("bytes", "[]uint8")
"""Base64 text in files."""
STRING_MAP: Final = Scalar("map", "map[string]string")
ARGUMENTS: Final = Scalar("arguments", "runtime.Object")
"""The arguments of a plugin: any JSON, decoded when the plugin is known."""

DURATION: Final = Scalar("duration", "string")
"""A ``metav1.Duration``: a Go duration string in files."""

Float32: TypeAlias = Annotated[float, Scalar("float", "float32")]
DurationNs: TypeAlias = Annotated[int, DURATION]

_PLAIN: Final[dict[object, GoType]] = {bool: BOOL, str: STRING, bytes: BYTES}
_ZEROS: Final[dict[str, type[object]]] = {
    "bool": bool,
    "string": str,
    "int": int,
    "float": float,
    "duration": int,
    "bytes": bytes,
    "map": dict,
    "arguments": NoneType,
}
_MAX_INT32: Final = (1 << 31) - 1


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """Wire format of a field, if it does not follow from the annotation and the name.

    Attributes:
        json: its name in v1, if not the attribute's name in camel case; "-" if it is not in files.
        go_name: its Go name, if not the JSON name with a capital letter.
        embedded: name of the embedded struct that contains the field upstream; it appears in type errors.
        empty_is_unset: whether the default replaces an empty value, too.
        v1_pointer: whether an optional field is a pointer in v1 only.
        always: whether the field is written even if it is empty.
    """

    json: str = ""
    go_name: str = ""
    embedded: str = ""
    empty_is_unset: bool = False
    v1_pointer: bool = False
    always: bool = False


ALWAYS: Final = Wire(always=True)
EMPTY_IS_UNSET: Final = Wire(empty_is_unset=True)


class StructField(msgspec.Struct, frozen=True):
    """A field of a struct: its attribute, its Go type, its names in v1 and in Go, and the rest of its wire format."""

    attribute: str
    go_type: GoType
    json: str
    go_name: str
    wire: Wire


_FIELDS: dict[type[object], tuple[StructField, ...]] = {}


def fields_of(struct: type[object], **annotations: object) -> tuple[StructField, ...]:
    """Return the fields of a struct in upstream's order.

    `annotations` replace annotations of a Kubernetes API type, which lack details of this wire format. Pass them before
    the type is used.
    """
    found = _FIELDS.get(struct)
    if found is None:
        assert issubclass(struct, msgspec.Struct)
        hints = get_type_hints(struct, include_extras=True) | annotations
        every = (_field(attribute, hints[attribute]) for attribute in struct.__struct_fields__)
        found = _FIELDS[struct] = tuple(field for field in every if field.json != "-")
    return found


def _field(attribute: str, annotation: object) -> StructField:
    wire = next((mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, Wire)), Wire())
    go_type = _type_of(annotation)
    if wire.v1_pointer and isinstance(go_type, Pointer):
        go_type = Pointer(go_type.element, v1_only=True)
    first, *others = attribute.removesuffix("_ns").split("_")
    json = wire.json or first + "".join(word.capitalize() for word in others)
    go_name = wire.go_name or json[:1].upper() + json[1:]
    return StructField(attribute, go_type, json, go_name, wire)


def _type_of(annotation: object) -> GoType:
    """Return the Go type that an annotation names, or else the corresponding Go type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        for mark in arguments[1:]:
            if isinstance(mark, msgspec.Meta):
                return INT32 if mark.le == _MAX_INT32 else INT64
            if isinstance(mark, GoType):
                return mark
        return _type_of(arguments[0])
    if NoneType in arguments:
        inner = _type_of(arguments[0])
        # Go does not distinguish a nil list from an empty one.
        return inner if isinstance(inner, Slice) else Pointer(inner)
    if origin is tuple:
        return Slice(_type_of(arguments[0]))
    if origin is dict:
        return STRING_MAP
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    assert isinstance(annotation, type)
    return Nested(annotation)


def type_name(go_type: GoType, *, internal: bool) -> str:
    """Return the name of a type as Go's errors show it; pointers are dereferenced."""
    match go_type:
        case Scalar():
            return go_type.internal_name if internal and go_type.internal_name else go_type.name
        case Pointer():
            return type_name(go_type.element, internal=internal)
        case Slice():
            return "[]" + type_name(go_type.element, internal=internal)
        case Nested(struct):
            package = ("config" if internal else struct.go_package) if issubclass(struct, Struct) else "v1"
            return f"{package}.{struct.__name__}"


def zero(go_type: GoType, *, internal: bool) -> object:
    """Return the value of a null element; in the internal version, also of an absent field."""
    match go_type:
        case Scalar():
            return _ZEROS[go_type.kind]()
        case Pointer():
            return zero(go_type.element, internal=True) if internal and go_type.v1_only else None
        case Slice():
            return ()
        case Nested(struct):
            return struct(**absent_values(struct, internal=internal))


def absent_values(struct: type[object], *, internal: bool) -> dict[str, object]:
    """Return the values of absent fields that are not the defaults of the struct, by attribute."""
    if not internal or not issubclass(struct, Struct):
        return {}
    return {field.attribute: zero(field.go_type, internal=True) for field in fields_of(struct)}
