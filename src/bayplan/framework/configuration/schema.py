"""The wire format of a struct: JSON names, Go types, and the meaning of an absent field.

The structs of the configuration are frozen, in the form that the scheduler uses (no pointers if there is a default). The
annotations of their fields hold a ``Wire``, which ``decode.py`` and ``encode.py`` read. Upstream has two versions of every
struct: ``v1``, used in files, and the internal one, which a file can request with the version ``__internal``.
"""

from inspect import get_annotations
from typing import ClassVar, Final, TypeAlias

import msgspec


class _EmptyList(tuple[object, ...]):
    """The type of `EMPTY_LIST`."""

    __slots__ = ()


EMPTY_LIST: Final[tuple[()]] = _EmptyList()  # type: ignore[assignment]
"""An empty list that was written in the text. Equal to ``()``, which means that none was; error texts compare by identity."""


class Scalar(msgspec.Struct, frozen=True):
    """A Go bool, string, integer or float; ``name`` is the name of a Go type that differs between versions."""

    kind: str
    name: str
    internal_name: str = ""
    bits: int = 0


class Duration(msgspec.Struct, frozen=True):
    """A ``metav1.Duration``: a Go duration text, nanoseconds here."""


class Base64(msgspec.Struct, frozen=True):
    """A Go ``[]byte``: base64 text."""


class StringMap(msgspec.Struct, frozen=True):
    """A ``map[string]string``."""


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of a plugin: any JSON, decoded once the plugin is known."""


class Pointer(msgspec.Struct, frozen=True):
    """A pointer in v1; in the internal version a plain value, unless ``everywhere``."""

    element: "GoType"
    everywhere: bool = False


class Slice(msgspec.Struct, frozen=True):
    """A list of elements."""

    element: "GoType"


class Struct(msgspec.Struct, frozen=True):
    """Base of the structs that correspond to a Go struct of the same name.

    The internal version of such a struct is another Go type, in the package ``config``: its fields have no JSON names, but
    their Go names. Types of the Kubernetes API have only one version; register them with `describe`.
    """

    go_package: ClassVar[str] = "v1"


class Nested(msgspec.Struct, frozen=True):
    """A struct as a value."""

    struct: type[object]


GoType: TypeAlias = Scalar | Duration | Base64 | StringMap | Arguments | Pointer | Slice | Nested

BOOL: Final = Scalar("bool", "bool")
STRING: Final = Scalar("string", "string")
INT32: Final = Scalar("int", "int32", bits=32)
INT64: Final = Scalar("int", "int64", bits=64)
FLOAT32: Final = Scalar("float", "float32", bits=32)


def named_string(name: str, internal_name: str = "") -> Scalar:
    """Describe a string type with a name of its own, e.g. ``v1.ScoringStrategyType``."""
    return Scalar("string", name, internal_name)


class Wire(msgspec.Struct, frozen=True):
    """The wire format of one field.

    Attributes:
        json: its name in v1.
        go_type: its type in v1.
        nil: the default in v1, for an unset pointer.
        omit_empty: whether an empty value is left out when written.
        go_name: its Go name, which is also its name in the internal version.
        embedded: name of the embedded struct that the field belongs to upstream; it appears in type errors.
    """

    json: str
    go_type: GoType
    nil: object
    omit_empty: bool
    go_name: str
    embedded: str


def wire(
    json: str,
    go_type: GoType,
    *,
    nil: object = None,
    omit_empty: bool = False,
    go_name: str = "",
    embedded: str = "",
) -> Wire:
    """Return the annotation of a field; see `Wire`."""
    return Wire(json, go_type, nil, omit_empty, go_name or json[:1].upper() + json[1:], embedded)


class StructField(msgspec.Struct, frozen=True):
    """A field of a struct: the attribute and its wire format."""

    attribute: str
    wire: Wire


_FIELDS: dict[type[object], tuple[StructField, ...]] = {}


def describe(struct: type[object], **fields: Wire) -> None:
    """Register the wire format of the fields of a Kubernetes API type, in upstream's order."""
    _FIELDS[struct] = tuple(StructField(attribute, wire) for attribute, wire in fields.items())


def is_versioned(struct: type[object]) -> bool:
    """Return whether a struct has a separate internal version."""
    return issubclass(struct, Struct)


def fields_of(struct: type[object]) -> tuple[StructField, ...]:
    """Return the fields of a struct that have a wire format, in upstream's order."""
    if struct not in _FIELDS and issubclass(struct, Struct):
        _FIELDS[struct] = tuple(
            StructField(attribute, format_)
            for attribute, annotation in get_annotations(struct).items()
            for format_ in getattr(annotation, "__metadata__", ())
            if isinstance(format_, Wire)
        )
    return _FIELDS[struct]


def type_name(go_type: GoType, *, internal: bool) -> str:
    """Return the name of a type in Go's errors; pointers are dereferenced."""
    match go_type:
        case Scalar():
            return go_type.internal_name if internal and go_type.internal_name else go_type.name
        case Pointer():
            return type_name(go_type.element, internal=internal)
        case Slice():
            return "[]" + type_name(go_type.element, internal=internal)
        case Nested():
            return f"{_package(go_type.struct, internal=internal)}.{go_type.struct.__name__}"
        case Duration():
            return "string"
        case Base64():
            return "[]uint8"
        case StringMap():
            return "map[string]string"
        case Arguments():
            return "runtime.Object"


def _package(struct: type[object], *, internal: bool) -> str:
    if not issubclass(struct, Struct):
        return "v1"
    return "config" if internal else struct.go_package


def zero(go_type: GoType, *, internal: bool) -> object:
    """Return the value of an absent field of a type, before defaults."""
    match go_type:
        case Scalar(kind="bool"):
            return False
        case Scalar(kind="string"):
            return ""
        case Scalar(kind="float"):
            return 0.0
        case Scalar() | Duration():
            return 0
        case Base64():
            return b""
        case Slice():
            return ()
        case StringMap():
            return {}
        case Pointer():
            if internal and not go_type.everywhere:
                return zero(go_type.element, internal=True)
            return None
        case Nested():
            values = {field.attribute: absent_value(field, internal=internal) for field in fields_of(go_type.struct)}
            return go_type.struct(**values)
        case Arguments():
            return None


def absent_value(field: StructField, *, internal: bool) -> object:
    """Return the value of a field that is not set: the default of a pointer in v1, otherwise the zero value."""
    go_type = field.wire.go_type
    if isinstance(go_type, Pointer) and not internal:
        return field.wire.nil
    return zero(go_type, internal=internal)
