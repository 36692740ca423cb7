"""Decode a JSON tree into a struct, strictly: report unknown and duplicate fields, reject wrong types.

Texts and precedence are those of sigs.k8s.io/json, with which kube-scheduler reads its configuration: a type error
takes precedence over all remarks about fields, only the first type error is reported, and an invalid duration ends
decoding.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar, cast

from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.durations import parse_duration
from bayplan.base.go_text.json import float32
from bayplan.base.go_text.quoting import GoTextError, quote
from bayplan.framework.configuration.document import RawArguments
from bayplan.framework.configuration.field_errors import Step, path_of
from bayplan.framework.configuration.json_tree import JsonNode, JsonNumber, JsonObject, kind_of
from bayplan.framework.configuration.schema import (
    EMPTY_LIST,
    Arguments,
    Base64,
    Duration,
    GoType,
    Nested,
    Pointer,
    Scalar,
    Slice,
    StringMap,
    Struct,
    StructField,
    absent_value,
    fields_of,
    type_name,
    zero,
)
from bayplan.objects.selectors import parse_int64

_MAX_REMARKS = 100
_TYPE_META = ("kind", "apiVersion")

S = TypeVar("S", bound=Struct)


class Remark(NamedTuple):
    """One problem found while decoding.

    Attributes:
        text: upstream's text.
        steps: the path of the field.
        message: the text without the path, or "" to show `text`.
        of_key: whether the name of the field is wrong, not its value.
    """

    text: str
    steps: tuple[Step, ...] = ()
    message: str = ""
    of_key: bool = False


class DecodeError(ValueError):
    """A text that can't be decoded into the struct.

    Attributes:
        remarks: the individual problems.
    """

    def __init__(self, text: str, remarks: Sequence[Remark] = (), *, steps: tuple[Step, ...] = ()) -> None:
        super().__init__(text)
        self.remarks = tuple(remarks) or (Remark(text, steps),)


def decode_struct(node: JsonNode, struct: type[S], *, internal: bool = False) -> tuple[S, tuple[Remark, ...]]:
    """Decode a tree into a struct that has ``kind`` and ``apiVersion``; return it with the remarks of strict decoding.

    Args:
        node: the tree; null leaves every field as if it were absent.
        struct: the dataclass to create.
        internal: whether the tree is in the internal version, which has other names and types, and no defaults.

    Raises:
        DecodeError: a value has the wrong type.
    """
    reader = _StructReader(internal)
    value = reader.read(node, Nested(struct), zero(Nested(struct), internal=internal), root=True)
    if reader.type_error is not None:
        raise reader.type_error
    assert isinstance(value, struct)
    return value, tuple(reader.remarks.values())


class _StructReader:
    """The state of one decoding: the current position, for messages, and the problems found so far."""

    def __init__(self, internal: bool) -> None:
        self.internal = internal
        self.remarks: dict[str, Remark] = {}
        self.type_error: DecodeError | None = None
        self.steps: tuple[Step, ...] = ()
        self.struct = ""
        self.fields: tuple[str, ...] = ()

    def read(self, node: JsonNode, go_type: GoType, absent: object, *, root: bool = False) -> object:
        """Decode a value of a type. `absent`: the result if there is no usable value."""
        match go_type:
            case Pointer():
                if node is None:
                    return absent
                return self.read(node, go_type.element, zero(go_type.element, internal=self.internal))
            case Duration():
                return self.duration(node)
            case Arguments():
                # In the internal version, arguments are a Go interface with methods: nothing but null can be decoded
                # into it.
                return self.refused(node, go_type, None) if self.internal or node is None else RawArguments(node)
            case Nested():
                return self.nested(node, go_type, absent, root=root)
            case Slice():
                return self.slice(node, go_type)
            case StringMap():
                return self.string_map(node, go_type)
            case Base64():
                return self.base64(node, go_type)
            case Scalar():
                return self.scalar(node, go_type, absent)

    # Structs, lists and maps.

    def nested(self, node: JsonNode, go_type: Nested, absent: object, *, root: bool) -> object:
        if not isinstance(node, JsonObject):
            return self.refused(node, go_type, absent)
        fields, by_go_name = fields_of(go_type.struct), self.internal and issubclass(go_type.struct, Struct)
        known = {field.go_name if by_go_name else field.json: field for field in fields}
        values = {field.attribute: absent_value(field, internal=self.internal) for field in fields}
        seen: set[str] = set()
        for key, item in node.pairs:
            field = known.get(key)
            if field is None and not (root and key in _TYPE_META):
                self.remark("unknown", key)
                continue
            if key in seen:
                self.remark("duplicate", key)
            seen.add(key)
            if field is None:
                continue
            with self.inside(go_type.struct.__name__, field, key):
                default = absent_value(field, internal=self.internal)
                values[field.attribute] = self.read(item, field.go_type, default)
                if field.empty is not None and not self.internal:
                    values[field.attribute] = values[field.attribute] or field.empty
        return go_type.struct(**values)

    @contextmanager
    def inside(self, struct: str, field: StructField, key: str) -> Iterator[None]:
        """Set the current position to a field of a struct while the field is decoded."""
        before = self.steps, self.struct, self.fields
        embedded = (field.embedded,) if field.embedded else ()
        self.steps, self.struct, self.fields = (*self.steps, key), struct, (*self.fields, *embedded, key)
        yield
        self.steps, self.struct, self.fields = before

    def slice(self, node: JsonNode, go_type: Slice) -> object:
        if not isinstance(node, list):
            return self.refused(node, go_type, ())
        items, steps = [], self.steps
        for index, item in enumerate(node):
            self.steps = (*steps, index)
            items.append(self.read(item, go_type.element, zero(go_type.element, internal=self.internal)))
        self.steps = steps
        return tuple(items) if items else EMPTY_LIST

    def string_map(self, node: JsonNode, go_type: StringMap) -> object:
        if not isinstance(node, JsonObject):
            return self.refused(node, go_type, {})
        values: dict[str, object] = {}
        steps = self.steps
        for key, item in node.pairs:
            if key in values:
                self.remark("duplicate", key)
            self.steps = (*steps, key)
            values[key] = self.scalar(item, Scalar("string", "string"), "")
            self.steps = steps
        return dict(sorted(values.items()))

    # Single values.

    def scalar(self, node: JsonNode, go_type: Scalar, absent: object) -> object:
        match node, go_type.kind:
            case (bool(), "bool") | (str(), "string"):
                return node
            case JsonNumber(), "int" | "float":
                value = _number(node.literal, go_type)
                return self.refused(node, go_type, absent, literal=node.literal) if value is None else value
        return self.refused(node, go_type, absent)

    def duration(self, node: JsonNode) -> int:
        # null is decoded as the empty text, which is not a duration.
        if node is not None and not isinstance(node, str):
            raise self.mismatch(node, Scalar("string", "string"), "")
        try:
            return parse_duration(node or "")
        except GoTextError as error:
            raise DecodeError(str(error), steps=self.steps) from None

    def base64(self, node: JsonNode, go_type: Base64) -> object:
        if isinstance(node, list):
            byte = Scalar("int", "uint8", bits=8)
            return bytes(cast(int, self.scalar(item, byte, 0)) for item in node)
        if not isinstance(node, str):
            return self.refused(node, go_type, b"")
        try:
            return decode_base64(node)
        except GoTextError as error:
            self.type_error = self.type_error or DecodeError(str(error), steps=self.steps)
            return b""

    # Remarks and errors.

    def remark(self, what: str, key: str) -> None:
        steps = (*self.steps, key)
        path = path_of(steps).removeprefix("$").removeprefix(".")
        text = f"{what} field {quote(path)}"
        if len(self.remarks) < _MAX_REMARKS:
            self.remarks.setdefault(text, Remark(text, steps, f"{what} field", of_key=True))

    def refused(self, node: JsonNode, go_type: GoType, absent: object, *, literal: str = "") -> object:
        """Record a value of the wrong type, unless it is null; return `absent`, the value to use instead."""
        if node is not None:
            self.type_error = self.type_error or self.mismatch(node, go_type, literal)
        return absent

    def mismatch(self, node: JsonNode, go_type: GoType, literal: str) -> DecodeError:
        found = f"number {literal}" if literal else kind_of(node)
        target = f"Go struct field {self.struct}.{'.'.join(self.fields)}" if self.fields else "Go value"
        name = type_name(go_type, internal=self.internal)
        # If an element of a list is wrong, the position is that of the list, as in upstream's paths.
        steps = self.steps[:-1] if self.steps and isinstance(self.steps[-1], int) else self.steps
        return DecodeError(f"json: cannot unmarshal {found} into {target} of type {name}", steps=steps)


def _number(literal: str, go_type: Scalar) -> int | float | None:
    """Parse a number as a Go integer or float of this type; return None if it does not fit."""
    if go_type.kind == "float":
        try:
            value = float32(float(literal))
        except OverflowError:
            return None
        return None if math.isinf(value) else value
    integer = parse_int64(literal)
    if integer is None:
        return None
    if go_type.bits == 8:
        return integer if 0 <= integer < 256 else None
    return integer if -(1 << go_type.bits - 1) <= integer < 1 << go_type.bits - 1 else None
