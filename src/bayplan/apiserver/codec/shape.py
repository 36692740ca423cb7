"""The shape of a Go type: decodes a JSON value as Go would, and returns the value that Go would encode again.

A single pass does what decoding into a Go struct and encoding it does: it checks types, drops unknown fields and nulls,
drops values that `omitempty` omits, writes quantities and times in canonical form, and adds the empty values that Go
encodes (`status: {}`, `containers: null`). Each type is compiled once from `bayplan.apiserver.schema.facts`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from bayplan.apiserver.codec import scalars
from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.schema.facts import GoField, api_facts
from bayplan.base.errors import InvariantError
from bayplan.base.plain_data import Plain

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CORE = "io.k8s.api.core.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_LEAVES: dict[str, Callable[[object], object]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": scalars.read_quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": scalars.read_int_or_string,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": scalars.read_anything,
    _META + "Time": scalars.read_time,
    _META + "MicroTime": scalars.read_micro_time,
    _META + "FieldsV1": scalars.read_anything,
    _META + "Duration": scalars.read_anything,
    _EXTENSIONS + "JSON": scalars.read_anything,
    _EXTENSIONS + "JSONSchemaPropsOrArray": lambda value: _read_schema_or(value, "array"),
    _EXTENSIONS + "JSONSchemaPropsOrBool": lambda value: _read_schema_or(value, "bool"),
    _EXTENSIONS + "JSONSchemaPropsOrStringArray": lambda value: _read_schema_or(value, "strings"),
}
_ZERO_LEAVES: dict[str, object] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "0",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 0,
    _META + "Duration": "0s",
}
_ZEROS: dict[str, object] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0, "[]uint8": None}
_UNCHANGED: dict[str, type] = {"string": str, "bool": bool}
_DROPPED = object()


class Unknown:
    """Receives whether a decoded value has unknown fields.

    Attributes:
        found: set by `Reader.read` if there are any.
    """

    def __init__(self) -> None:
        self.found = False


class Reader:
    """Decodes the JSON values of a type."""

    def read(self, value: object, unknown: Unknown | None = None) -> object:
        """Return the value that Go would encode after decoding a JSON value other than null.

        Args:
            value: the JSON value.
            unknown: receives whether the value has unknown fields.

        Raises:
            DecodeError: the value does not fit the type.
        """
        raise InvariantError(f"{type(self).__name__} reads no values")


class ScalarReader(Reader):
    """Decodes values with a function.

    Args:
        function: see `bayplan.apiserver.codec.scalars`.
    """

    def __init__(self, function: Callable[[object], object]) -> None:
        self._function = function

    def read(self, value: object, unknown: Unknown | None = None) -> object:
        """Return the value as Go would encode it after decoding."""
        return self._function(value)


class ListReader(Reader):
    """Decodes lists.

    Args:
        item: decodes the items.
        go_type: the type of the list in errors.
        zero: returns the value for a null item.
    """

    def __init__(self, item: Reader, go_type: str, zero: Callable[[], object]) -> None:
        self.item, self._go_type, self._zero = item, go_type, zero

    def read(self, value: object, unknown: Unknown | None = None) -> object:
        """Return the list as Go would encode it after decoding."""
        if type(value) is not list:
            raise DecodeError(value=go_kind(value), go_type=self._go_type)
        reader, found = self.item, []
        for item in value:
            found.append(self._zero() if item is None else reader.read(item, unknown))
        return found


class MapReader(Reader):
    """Decodes maps.

    Args:
        item: decodes the values.
        exact: the Python type of values that `item` would return unchanged, or None.
        go_type: the type of the map in errors.
        zero: returns the value for a null value.
    """

    def __init__(self, item: Reader, exact: type | None, go_type: str, zero: Callable[[], object]) -> None:
        self.item, self._exact, self._go_type, self._zero = item, exact, go_type, zero

    def read(self, value: object, unknown: Unknown | None = None) -> object:
        """Return the map as Go would encode it after decoding."""
        if type(value) is not dict:
            raise DecodeError(value=go_kind(value), go_type=self._go_type)
        out: Plain = {}
        reader, exact = self.item, self._exact
        for name, item in value.items():
            if type(item) is exact:
                out[name] = item
            else:
                out[name] = self._zero() if item is None else reader.read(item, unknown)
        return out


class FieldShape:
    """The decoder of one field.

    Attributes:
        reader: decodes values other than null.
        exact: the Python type of values that the reader would return unchanged, or None.
        empty: the value to omit, or a marker that equals nothing.
        nil_when_empty: whether storage returns an empty list as null.
        inner: the shape of the innermost structs; None if there are none.
        containers: the ``list`` and ``map`` types around the innermost type.
        path: the name in errors, including embedded structs: ``VolumeSource.configMap``.
        is_cleared_by_null: whether null replaces an earlier value of the field in Go.
    """

    def __init__(self, reader: Reader, facts: GoField, inner: Shape | None, struct: str, path: str) -> None:
        self.reader = reader
        self.path = path
        self.inner = inner
        self.containers = tuple(each for each in facts.containers if each != "pointer")
        self.exact = None if self.containers else _UNCHANGED.get(facts.type)
        self.struct = struct
        self.omit_zero = facts.omit_zero
        self.nil_when_empty = self.containers[:1] == ("list",) and "pointer" not in facts.containers[:1]
        self.is_cleared_by_null = bool(facts.containers) or facts.type in _LEAVES
        self.empty: object = _DROPPED
        if facts.omit_empty and "pointer" not in facts.containers[:1]:
            if self.containers:
                self.empty = [] if self.containers[0] == "list" else {}
            elif facts.type in _ZEROS:
                self.empty = "" if facts.type == "[]uint8" else _ZEROS[facts.type]


class Shape(Reader):
    """The decoder of a struct.

    Attributes:
        name: the name of the Go type without package, for error messages.
        go_type: the name with package, e.g. ``v1.PodSpec``.
        fields: the fields by JSON name, including those of embedded structs.
        shown: functions that return the values to add for absent fields, by JSON name.
    """

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name
        self.name = type_name.rsplit(".", 1)[-1]
        self.go_type = ".".join(type_name.rsplit(".", 2)[-2:])
        self.fields: dict[str, FieldShape] = {}
        self.shown: dict[str, Callable[[], object]] = {}

    def read(self, value: object, unknown: Unknown | None = None) -> object:
        """Return the struct as Go would encode it after decoding: without unknown fields, nulls and omitted values."""
        if type(value) is not dict:
            raise DecodeError(value=go_kind(value), go_type=self.go_type)
        out: Plain = {}
        empties: Plain | None = None
        fields = self.fields
        for name, item in value.items():
            field = fields.get(name)
            if field is None:
                if unknown is not None:
                    unknown.found = True
                continue
            if item is None:
                continue
            if type(item) is field.exact:
                found = item
            else:
                try:
                    found = field.reader.read(item, unknown)
                except DecodeError as problem:
                    problem.inside(field.struct, field.path)
                    raise
            if not found and found == field.empty and type(found) is type(field.empty):
                if field.containers:
                    empties = {**(empties or {}), name: found}
                continue
            out[name] = found
        for name, make in self.shown.items():
            if name not in out:
                out[name] = make()
        return out if empties is None else Emptied(out, empties)

    def zero(self) -> Plain:
        """Return what Go encodes for the zero value of the struct."""
        return {name: make() for name, make in self.shown.items()}

    def unknown_fields(self, value: Plain, path: str = "") -> list[str]:
        """Return the paths of unknown fields in document order, such as ``spec.containers[0].nope``."""
        found: list[str] = []
        for name, item in value.items():
            here = f"{path}.{name}" if path else name
            field = self.fields.get(name)
            if field is None:
                found.append(here)
            elif field.inner is not None:
                _unknown_inside(field.inner, item, field.containers, here, found)
        return found


def drop_empty_lists(shape: Shape, document: Plain) -> None:
    """Replace the empty lists of an object with null in place, if upstream's storage would return null."""
    for name, field, inner in _lists_of(shape.type_name):
        value = document.get(name)
        if value == [] and field.nil_when_empty:
            document[name] = None
        elif value and inner:
            _drop_inside(field, value, field.containers)


def _drop_inside(field: FieldShape, value: object, containers: tuple[str, ...]) -> None:
    if isinstance(value, dict) and not containers:
        assert field.inner is not None
        drop_empty_lists(field.inner, value)
    elif containers and isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            _drop_inside(field, item, containers[1:])


@cache
def _lists_of(type_name: str) -> tuple[tuple[str, FieldShape, bool], ...]:
    """Return (name, decoder, is nested) for each field of a type that `drop_empty_lists` must visit.

    A nested field contains structs with such fields. A recursive type has no nested fields.
    """
    return _find_lists(shape_of(type_name), ())


def _find_lists(shape: Shape, above: tuple[str, ...]) -> tuple[tuple[str, FieldShape, bool], ...]:
    if shape.type_name in above:
        return ()
    found = []
    for name, field in shape.fields.items():
        inner = field.inner is not None and bool(_find_lists(field.inner, (*above, shape.type_name)))
        if inner or (field.nil_when_empty and field.empty is _DROPPED):
            found.append((name, field, inner))
    return tuple(found)


def _unknown_inside(shape: Shape, value: object, containers: tuple[str, ...], path: str, found: list[str]) -> None:
    if not containers:
        if isinstance(value, dict):
            found += shape.unknown_fields(value, path)
    elif containers[0] == "list" and isinstance(value, list):
        for index, item in enumerate(value):
            _unknown_inside(shape, item, containers[1:], f"{path}[{index}]", found)
    elif containers[0] == "map" and isinstance(value, dict):
        for key, item in value.items():
            _unknown_inside(shape, item, containers[1:], f"{path}.{key}", found)


@cache
def shape_of(type_name: str) -> Shape:
    """Return the shape of a type by its name in OpenAPI, e.g. ``io.k8s.api.core.v1.Pod``."""
    return _make(type_name, {})


def _make(type_name: str, made: dict[str, Shape]) -> Shape:
    """Return a compiled shape. `made` contains the shapes so far, because types can be recursive."""
    if type_name in made:
        return made[type_name]
    shape = made[type_name] = Shape(type_name)
    _add_fields(shape, type_name, made)
    return shape


def _add_fields(shape: Shape, type_name: str, made: dict[str, Shape], embedded: str = "") -> None:
    # Errors name the outer struct of an embedded struct.
    struct = shape.name
    for facts in api_facts().types.get(type_name, ()):
        if facts.inline:
            _add_fields(shape, facts.type, made, f"{embedded}{facts.type.rsplit('.', 1)[-1]}.")
            continue
        inner = _make(facts.type, made) if _is_struct(facts.type) else None
        field = FieldShape(_reader(facts, inner, type_name), facts, inner, struct, embedded + facts.name)
        shape.fields[facts.name] = field
        _show(shape, facts, inner)


def _is_struct(type_name: str) -> bool:
    return type_name.startswith("io.k8s.") and type_name not in _LEAVES


def _show(shape: Shape, facts: GoField, inner: Shape | None) -> None:
    """Record the value to add when the field is absent, if its type has such a value."""
    if facts.omit_zero or (facts.omit_empty and (facts.containers or facts.type in _ZEROS)):
        return
    if facts.containers:
        shape.shown[facts.name] = lambda: None
    elif inner is not None:
        shape.shown[facts.name] = inner.zero
    else:
        shape.shown[facts.name] = lambda: _zero_of(facts.type)


def zero_value(facts: GoField) -> object:
    """Return Go's zero value of a field; None for pointers, lists and maps."""
    return None if facts.containers else _ZEROS.get(facts.type)


def _read_schema_or(value: object, other: str) -> object:
    """Return a decoded JSON schema, or a value of the other type that the field allows.

    Args:
        value: the JSON value.
        other: the other type: "array" (of schemas), "strings" or "bool".
    """
    schema = shape_of(_EXTENSIONS + "JSONSchemaProps")
    if type(value) is dict:
        return schema.read(value)
    if other == "array" and type(value) is list:
        return [schema.read(each) for each in value]
    if other == "strings" and type(value) is list:
        return [scalars.read_string("string")(each) for each in value]
    if other == "bool":
        if type(value) is bool:
            return value
        raise DecodeError("boolean or JSON schema expected")
    return value


def _zero_of(type_name: str) -> object:
    """Return Go's zero value of a type that is not a struct."""
    return _ZEROS.get(type_name, _ZERO_LEAVES.get(type_name))


def _reader(facts: GoField, inner: Shape | None, owner: str) -> Reader:
    # The defaults of core round amounts; those of other groups, such as RuntimeClass, do not.
    is_rounded = facts.go_type.endswith("v1.ResourceList") and owner.startswith(_CORE)
    leaf = scalars.read_resource_amount if is_rounded else _LEAVES.get(facts.type)
    core: Reader = inner if inner is not None else ScalarReader(leaf or _scalar_reader(facts))
    wrapped = [each for each in facts.containers if each != "pointer"]
    go_types = [_element_type(facts.go_type, depth) for depth in range(len(wrapped))]
    # In storage, null becomes empty bytes in a map of bytes.
    zero: Callable[[], object] = (
        inner.zero if inner is not None else lambda: "" if facts.type == "[]uint8" else _zero_of(facts.type)
    )
    exact = _UNCHANGED.get(facts.type)
    for container, go_type in zip(reversed(wrapped), reversed(go_types), strict=True):
        core = ListReader(core, go_type, zero) if container == "list" else MapReader(core, exact, go_type, zero)
        exact = None
    return core


def _element_type(go_type: str, depth: int) -> str:
    for _ in range(depth):
        go_type = go_type.partition("]")[2]
    return go_type.lstrip("*")


def _scalar_reader(facts: GoField) -> Callable[[object], object]:
    go_type = facts.go_type
    if facts.containers and ("[" in go_type):
        go_type = go_type.rsplit("]", 1)[-1]
    if facts.type == "[]uint8":
        go_type = "[]uint8"
    if facts.type in ("int32", "int64"):
        return scalars.read_integer(facts.type, go_type)
    if facts.type == "[]uint8":
        return scalars.read_bytes(go_type)
    if facts.type == "bool":
        return scalars.read_bool(go_type)
    return scalars.read_float(go_type) if facts.type == "float64" else scalars.read_string(go_type)
