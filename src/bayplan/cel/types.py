"""CEL types, and which types are assignable to which."""

from __future__ import annotations

from typing import NamedTuple


class CelType(NamedTuple):
    """A type.

    Attributes:
        kind: ``primitive``, ``wellknown``, ``dyn``, ``any``, ``error``, ``null``, ``list``, ``map``, ``type``,
            ``param``, ``opaque`` or ``object``.
        name: the name in type errors.
        params: the types of elements, keys and values.
    """

    kind: str
    name: str
    params: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        if self.kind == "null":
            return "null"
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(str(param) for param in self.params)})"


def primitive(name: str) -> CelType:
    """Return the primitive type with this name."""
    return CelType("primitive", name)


BOOL, INT, UINT, DOUBLE = primitive("bool"), primitive("int"), primitive("uint"), primitive("double")
STRING, BYTES = primitive("string"), primitive("bytes")
NULL = CelType("null", "null_type")
DYN = CelType("dyn", "dyn")
ANY = CelType("any", "any")
ERROR = CelType("error", "!error!")
QUANTITY = CelType("opaque", "kubernetes.Quantity")
SEMVER = CelType("opaque", "kubernetes.Semver")
TIMESTAMP, DURATION = CelType("wellknown", "timestamp"), CelType("wellknown", "duration")
URL, IP, CIDR, FORMAT = (
    CelType("opaque", name) for name in ("kubernetes.URL", "net.IP", "net.CIDR", "kubernetes.NamedFormat")
)
AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION = (
    CelType("object", f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)


def list_of(element: CelType) -> CelType:
    """Return the type of lists with this element type."""
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps with these key and value types."""
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the type of optional values of this type."""
    return CelType("opaque", "optional_type", (value,))


def type_of(value: CelType) -> CelType:
    """Return the type of a type as a value, such as ``type(int)``."""
    return CelType("type", "type", (value,))


def param(name: str) -> CelType:
    """Return a type parameter with this name."""
    return CelType("param", name)


def is_dyn(kind: CelType) -> bool:
    """Return whether a type is only known at run time: dyn or any."""
    return kind.kind in ("dyn", "any")


def is_wild(kind: CelType) -> bool:
    """Return whether a type is assignable to every other type: dyn, any, or error."""
    return kind.kind in ("dyn", "any", "error")


def unwrap_optional(kind: CelType) -> tuple[CelType, bool]:
    """Return the value type of an optional type and True, or any other type unchanged and False."""
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.params[0], True
    return kind, False


class Unifier:
    """Binds type parameters to types."""

    def __init__(self) -> None:
        self._found: dict[CelType, CelType] = {}
        self._count = 0

    def fresh(self) -> CelType:
        """Return a new, unbound type parameter."""
        self._count += 1
        return param(f"_var{self._count - 1}")

    def assignable(self, sources: list[CelType], targets: list[CelType]) -> bool:
        """Return whether each source is assignable to its target; if so, bind their type parameters."""
        before = dict(self._found)
        if len(sources) == len(targets) and all(map(self._assignable, sources, targets)):
            return True
        self._found = before
        return False

    def _assignable(self, source: CelType, target: CelType) -> bool:
        if target.kind == "param":
            valid, bound = self._substitutes(source, target)
            if valid or bound:
                return valid
        if source.kind == "param":
            return self._substitutes(target, source)[0]
        if is_wild(source) or is_wild(target):
            return True
        if "null" in (source.kind, target.kind):
            other = target if source.kind == "null" else source
            return other.kind in ("null", "opaque", "object", "wellknown")
        if source.kind in ("opaque", "list", "map"):
            return (source.kind, source.name, len(source.params)) == (
                target.kind,
                target.name,
                len(target.params),
            ) and all(map(self._assignable, source.params, target.params))
        if source.kind == "type":
            return target.kind == "type"
        return source == target

    def _substitutes(self, source: CelType, target: CelType) -> tuple[bool, bool]:
        """Return whether a type parameter can be bound to a type, and whether it was already bound."""
        if source == target:
            return True, True
        known = self._found.get(target)
        if known is not None:
            if source == known:
                return True, True
            if self._assignable(source, known):
                general = most_general(source, known)
                if self._is_free(target, general):
                    self._found[target] = general
                return True, True
            return False, True
        if self._is_free(target, source):
            self._found[target] = source
            return True, False
        return False, False

    def _is_free(self, parameter: CelType, within: CelType) -> bool:
        if parameter == within:
            return False
        if within.kind == "param":
            known = self._found.get(within)
            return known is None or self._is_free(parameter, known)
        return all(self._is_free(parameter, part) for part in within.params)

    def resolve(self, kind: CelType, *, to_dyn: bool = False) -> CelType:
        """Return a type with its type parameters replaced; with `to_dyn`, unbound parameters become `DYN`."""
        known = self._found.get(kind)
        if known is not None:
            return self.resolve(known, to_dyn=to_dyn)
        if kind.kind == "param":
            return DYN if to_dyn else kind
        if not kind.params:
            return kind
        return kind._replace(params=tuple(self.resolve(part, to_dyn=to_dyn) for part in kind.params))


def most_general(left: CelType, right: CelType) -> CelType:
    """Return the more general of two compatible types."""
    return left if _at_most_as_specific(left, right) else right


def _at_most_as_specific(left: CelType, right: CelType) -> bool:
    if is_dyn(left) or left.kind == "param":
        return True
    if is_dyn(right) or right.kind == "param":
        return False
    if left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.params or right.params:
        return left.name == right.name and all(map(_at_most_as_specific, left.params, right.params))
    return left == right


def declared_name(kind: CelType) -> str:
    """Return the name of a type as declarations show it, which differs from that in type errors for some types."""
    if kind.kind == "any":
        return "google.protobuf.Any"
    if kind.kind == "wellknown":
        return f"google.protobuf.{kind.name.capitalize()}"
    if not kind.params:
        return kind.name
    return f"{kind.name}({', '.join(declared_name(part) for part in kind.params)})"
