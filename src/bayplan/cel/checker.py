"""The type checker: determines the type of every part of an expression, or reports type errors."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.base.go_regexp import RegexpError, compile_regexp
from bayplan.cel import library
from bayplan.cel.declarations import FUNCTIONS, TYPE_NAMES, Overload
from bayplan.cel.library_formats import clause_problem, clauses_of
from bayplan.cel.problems import RunProblem
from bayplan.cel.source import Source
from bayplan.cel.syntax import (
    Bind,
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
    qualified_name,
)
from bayplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    Unifier,
    declared_name,
    is_dyn,
    is_wild,
    list_of,
    map_of,
    most_general,
    optional_of,
    type_of,
    unwrap_optional,
)
from bayplan.cel.values import Uint


class Checker:
    """Checks the types of one expression.

    Args:
        source: the source text.
        variables: the types of the variables, by name.
        objects: the types of the fields of object types, by type name.
        open_object: the name of an object type that can have any fields, at all depths, for expressions that construct
            objects, which can also use the functions of ``jsonpatch``; "" for none.

    Attributes:
        references: the variables that the expression uses.
    """

    def __init__(
        self,
        source: Source,
        variables: Mapping[str, CelType],
        objects: Mapping[str, Mapping[str, CelType]],
        open_object: str = "",
    ) -> None:
        self._source = source
        self._scopes: list[Mapping[str, CelType]] = [variables]
        self._objects = objects
        self._open_object = open_object
        self._unifier = Unifier()
        self._problems: list[tuple[int, str]] = []
        self._bad_constants: list[tuple[int, str]] = []
        self._elements: list[list[tuple[int, CelType]]] = []
        self._entries: list[list[tuple[int, CelType]]] = []
        self._bad_at = 0
        self._formats: list[tuple[str, ListNode, int]] = []
        self._kinds: dict[int, CelType] = {}
        self.references: set[str] = set()

    def check(self, node: Node) -> CelType:
        """Return the type of an expression.

        Raises:
            CompileProblem: the expression has type errors.
        """
        found = self._unifier.resolve(self._check(node), to_dyn=True)
        if not self._problems:
            self._problems += self._bad_constants
            self._check_homogeneous()
            self._check_formats()
        if self._problems:
            raise self._source.problems(self._problems)
        return found

    def type_of(self, node: Node) -> CelType:
        """Return the type of a node of the checked expression."""
        return self._unifier.resolve(self._kinds.get(id(node), DYN), to_dyn=True)

    def _check_homogeneous(self) -> None:
        """Report lists and maps of mixed types (cel-go's ``ValidateHomogeneousAggregateLiterals``).

        For a list, report the first wrong element; for a map, report all wrong keys and values.
        """
        for elements, reports_all in (
            *((each, False) for each in self._elements),
            *((each, True) for each in self._entries),
        ):
            first: CelType | None = None
            for at, kind in elements:
                resolved = self._unifier.resolve(kind, to_dyn=True)
                if first is None:
                    first = resolved
                elif resolved != first:
                    self._refuse(at, f"expected type '{first}' but found '{resolved}'")
                    if not reports_all:
                        break

    def _check_formats(self) -> None:
        """Report constant format strings whose clauses do not fit their arguments."""
        for text, args, at in self._formats:
            try:
                wanted = clauses_of(text)
            except RunProblem as problem:
                self._refuse(at, str(problem))
                continue
            problem_at = at
            try:
                for number, clause in enumerate(wanted):
                    if number >= len(args.items):
                        raise RunProblem(f"index {number} out of range")
                    problem_at = self._check_clause(clause, args.items[number])
            except RunProblem as problem:
                self._refuse(at if str(problem).startswith("index") else self._bad_at, str(problem))
                continue
            if len(args.items) > len(wanted):
                found = f"(expected {len(wanted)}, got {len(args.items)})"
                self._refuse(problem_at if not wanted else at, f"too many arguments supplied to string.format {found}")

    def _check_clause(self, clause: str, node: Node) -> int:
        """Check that a clause can format a value, and return the position of the value.

        Sets `_bad_at` to the position of the value that is being checked.

        Raises:
            RunProblem: the clause cannot format the value.
        """
        kind = self._unifier.resolve(self._kinds.get(id(node), DYN), to_dyn=True)
        self._bad_at = node.at
        if kind.kind != "dyn" and not fits_clause(clause, kind):
            raise RunProblem("error during formatting: " + clause_problem(clause, runtime_name(kind)))
        if clause == "s" and isinstance(node, ListNode):
            for item in node.items:
                self._check_clause("s", item)
        if clause == "s" and isinstance(node, MapNode):
            for key, value, _ in node.entries:
                self._check_clause("s", key)
                self._check_clause("s", value)
        return node.at

    def _refuse(self, at: int, text: str) -> CelType:
        self._problems.append((at, text))
        return ERROR

    def _check(self, node: Node) -> CelType:
        found = self._kinds[id(node)] = self._found(node)
        return found

    def _found(self, node: Node) -> CelType:
        match node:
            case Literal():
                return _type_of_literal(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case MessageNode():
                return self._message(node)
            case Fold():
                return self._fold(node)
            case Bind():
                return self._bind(node)

    def _lookup(self, name: str) -> CelType | None:
        for scope in reversed(self._scopes):
            if name in scope:
                if scope is self._scopes[0]:
                    self.references.add(name)
                return scope[name]
        return type_of(TYPE_NAMES[name]) if name in TYPE_NAMES else None

    def _ident(self, node: Ident) -> CelType:
        found = self._lookup(node.name)
        if found is not None:
            return found
        return self._refuse(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: Select) -> CelType:
        name = None if node.test else qualified_name(node)
        if name is not None and name in self._scopes[0]:
            return self._scopes[0][name]
        if name is not None and name in TYPE_NAMES:
            return type_of(TYPE_NAMES[name])
        result = self._field(node)
        if node.test:
            return BOOL
        return self._unifier.resolve(result)

    def _field(self, node: Select) -> CelType:
        target, was_optional = unwrap_optional(self._unifier.resolve(self._check(node.operand)))
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "object":
            known = self._field_type(target.name, node.field)
            result = known if known is not None else self._refuse(node.at, f"undefined field '{node.field}'")
        elif target.kind == "param":
            self._unifier.assignable([DYN], [target])
            result = DYN
        else:
            if not is_wild(target):
                # Kubernetes declares these types as messages without fields.
                is_message = str(target).startswith("kubernetes.")
                text = f"unexpected failed resolution of '{target}'" if is_message else ""
                self._refuse(node.at, text or f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if was_optional or node.optional else result

    def _is_open(self, name: str) -> bool:
        return bool(self._open_object) and f"{name}.".startswith(f"{self._open_object}.")

    def _field_type(self, type_name: str, field: str) -> CelType | None:
        return DYN if self._is_open(type_name) else self._objects.get(type_name, {}).get(field)

    def _message(self, node: MessageNode) -> CelType:
        known = node.type_name in self._objects or self._is_open(node.type_name)
        result = CelType("object", node.type_name)
        if not known:
            result = self._refuse(node.at, f"undeclared reference to '{node.type_name}' (in container '')")
        for name, value, optional, at in node.entries:
            kind = self._check(value)
            wanted = (self._field_type(node.type_name, name) or CelType("object", "")) if known else ERROR
            if optional:
                kind = self._held_by(value, kind)
            if not self._unifier.assignable([kind], [wanted]):
                shown = self._unifier.resolve(kind)
                text = f"expected type of field '{name}' is '{wanted}' but provided type is '{shown}'"
                self._refuse(at, text)
        return result

    # Calls.

    def _call(self, node: Call) -> CelType:
        lists, maps = len(self._elements), len(self._entries)
        args = [self._check(arg) for arg in node.args]
        if node.function == "format" and node.args and isinstance(node.args[0], ListNode):
            del self._elements[lists:], self._entries[maps:]  # The arguments of a format can have mixed types.
            if isinstance(node.target, Literal) and isinstance(node.target.value, str):
                self._formats.append((node.target.value, node.args[0], node.at))
        if node.function == "matches" and node.args:
            self._check_pattern(node.args[-1])
        if node.function in ("timestamp", "duration") and len(node.args) == 1 and node.target is None:
            self._check_time(node.function, node.args[0])
        if node.function in ("_&&_", "_||_"):
            for arg, kind in zip(node.args, args, strict=True):
                if not self._unifier.assignable([kind], [BOOL]):
                    self._refuse(arg.at, f"expected type 'bool' but found '{self._unifier.resolve(kind)}'")
            return BOOL
        target = node.target
        if target is not None:
            prefix = qualified_name(target)
            overloads = FUNCTIONS.get(f"{prefix}.{node.function}") if prefix is not None else None
            if overloads is not None and (prefix != "jsonpatch" or self._open_object):
                return self._resolve(node, f"{prefix}.{node.function}", overloads, args, member=False)
            args.insert(0, self._check(target))
        overloads = FUNCTIONS.get(node.function)
        if overloads is None:
            return self._refuse(node.at, f"undeclared reference to '{node.function}' (in container '')")
        return self._resolve(node, node.function, overloads, args, member=target is not None)

    def _check_pattern(self, node: Node) -> None:
        """Report a constant that is not a valid regular expression."""
        if isinstance(node, Literal) and isinstance(node.value, str):
            try:
                compile_regexp(node.value)
            except RegexpError:
                self._bad_constants.append((node.at, "invalid matches argument"))

    def _check_time(self, function: str, node: Node) -> None:
        """Report a constant that is not a valid timestamp or duration."""
        if isinstance(node, Literal) and (node.value is None or type(node.value) in (str, int)):
            try:
                library.call(function, [node.value])
            except RunProblem:
                self._bad_constants.append((node.at, f"invalid {function} argument"))

    def _resolve(
        self, node: Call, name: str, overloads: list[Overload], args: list[CelType], *, member: bool
    ) -> CelType:
        result: CelType | None = None
        node.overloads.clear()
        for overload in overloads:
            if overload.member is not member:
                continue
            wanted, gives = self._instance(overload)
            if not self._unifier.assignable(args, wanted):
                continue
            gives = self._unifier.resolve(gives)
            node.overloads.append(overload)
            if result is None:
                result = gives
            elif not is_dyn(result) and gives != result:
                result = DYN
        if result is not None:
            return result
        shown = [str(self._unifier.resolve(arg, to_dyn=True)) for arg in args]
        receiver = f"{shown.pop(0)}." if member else ""
        signature = f"{receiver}({', '.join(shown)})"
        return self._refuse(node.at, f"found no matching overload for '{name}' applied to '{signature}'")

    def _instance(self, overload: Overload) -> tuple[list[CelType], CelType]:
        """Return the parameter types and the result type of an overload, with new type parameters."""
        fresh: dict[CelType, CelType] = {}

        def renamed(kind: CelType) -> CelType:
            if kind.kind == "param":
                if kind not in fresh:
                    fresh[kind] = self._unifier.fresh()
                return fresh[kind]
            return kind._replace(params=tuple(map(renamed, kind.params))) if kind.params else kind

        return [renamed(arg) for arg in overload.args], renamed(overload.result)

    # Lists, maps, macros.

    def _join(self, known: CelType | None, kind: CelType) -> CelType:
        """Return the common type of two elements; `DYN` for incompatible types, which `_check_homogeneous` reports."""
        if known is None:
            return kind
        return most_general(known, kind) if self._unifier.assignable([known], [kind]) else DYN

    def _held_by(self, node: Node, kind: CelType) -> CelType:
        """Return the type of the value in an optional element."""
        held, was_optional = unwrap_optional(kind)
        if not was_optional and not is_dyn(held):
            self._refuse(node.at, f"expected type '{optional_of(held)}' but found '{held}'")
        return held

    def _list(self, node: ListNode) -> CelType:
        found: CelType | None = None
        elements: list[tuple[int, CelType]] = []
        self._elements.append(elements)
        for number, item in enumerate(node.items):
            kind = self._check(item)
            if number in node.optional:
                kind = self._held_by(item, kind)
            elements.append((item.at, kind))
            found = self._join(found, kind)
        return list_of(found if found is not None else self._unifier.fresh())

    def _map(self, node: MapNode) -> CelType:
        keys: CelType | None = None
        values: CelType | None = None
        found_keys: list[tuple[int, CelType]] = []
        found_values: list[tuple[int, CelType]] = []
        self._entries += (found_keys, found_values)
        for key, value, optional in node.entries:
            key_kind, kind = self._check(key), self._check(value)
            if optional:
                kind = self._held_by(value, kind)
            found_keys.append((key.at, key_kind))
            found_values.append((value.at, kind))
            keys, values = self._join(keys, key_kind), self._join(values, kind)
        if keys is None or values is None:
            return map_of(self._unifier.fresh(), self._unifier.fresh())
        return map_of(keys, values)

    def _fold(self, node: Fold) -> CelType:
        over = self._unifier.resolve(self._check(node.range))
        kinds = self._variables(node, over)
        self._scopes.append(dict(zip(node.variables, kinds, strict=True)))
        condition = self._check(node.condition) if node.condition is not None else None
        transform = self._check(node.transform) if node.transform is not None else None
        self._scopes.pop()
        result = self._fold_result(node, kinds, transform)
        if condition is not None and node.condition is not None and not self._unifier.assignable([condition], [BOOL]):
            at = node.condition.at if node.kind in ("all", "exists") else node.at
            self._refuse(at, self._wrong_condition(node, condition, result))
        return result

    def _fold_result(self, node: Fold, kinds: list[CelType], transform: CelType | None) -> CelType:
        if node.kind == "filter":
            return list_of(self._unifier.resolve(kinds[0]))
        if transform is None:
            return BOOL
        if node.kind == "transformMap":
            return map_of(kinds[0], transform)
        if node.kind == "transformMapEntry":
            return self._entry_map(node, transform)
        return list_of(self._unifier.resolve(transform))

    def _entry_map(self, node: Fold, transform: CelType) -> CelType:
        """Return the type of the map that ``transformMapEntry`` builds from maps of one type."""
        wanted = map_of(self._unifier.fresh(), self._unifier.fresh())
        if not self._unifier.assignable([transform], [wanted]):
            shown = self._unifier.resolve(transform)
            text = f"found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {shown})'"
            return self._refuse(node.at, text)
        return self._unifier.resolve(wanted)

    def _wrong_condition(self, node: Fold, condition: CelType, kind: CelType) -> str:
        shown = self._unifier.resolve(condition)
        if node.kind in ("all", "exists"):
            return f"expected type 'bool' but found '{shown}'"
        result = INT if node.kind == "exists_one" else kind
        return f"found no matching overload for '_?_:_' applied to '({shown}, {result}, {result})'"

    def _variables(self, node: Fold, over: CelType) -> list[CelType]:
        two = len(node.variables) == 2
        if over.kind == "list":
            return [INT, over.params[0]] if two else [over.params[0]]
        if over.kind == "map":
            return list(over.params) if two else [over.params[0]]
        if over.kind in ("dyn", "error", "param"):
            self._unifier.assignable([DYN], [over])
            return [DYN] * len(node.variables)
        self._refuse(
            node.range.at,
            f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return [ERROR] * len(node.variables)

    def _bind(self, node: Bind) -> CelType:
        value = self._check(node.value)
        if node.kind != "bind":
            value, was_optional = unwrap_optional(self._unifier.resolve(value))
            if not was_optional and not is_wild(value):
                self._refuse(node.at, f"found no matching overload for 'hasValue' applied to '{value}.()'")
        self._scopes.append({node.name: value})
        body = self._check(node.body)
        self._scopes.pop()
        return optional_of(body) if node.kind == "optMap" else body


_CLAUSE_KINDS: Mapping[str, tuple[CelType, ...]] = {
    "s": (INT, UINT, DOUBLE, BOOL, STRING, TIMESTAMP, BYTES, DURATION, NULL),
    "d": (INT, UINT),
    "f": (DOUBLE, STRING),
    "e": (DOUBLE, STRING),
    "b": (INT, UINT, BOOL),
    "x": (INT, UINT, STRING, BYTES),
    "X": (INT, UINT, STRING, BYTES),
    "o": (INT, UINT),
}


def fits_clause(clause: str, kind: CelType) -> bool:
    """Return whether a clause of a format string accepts values of a type."""
    return kind in _CLAUSE_KINDS[clause] or (clause == "s" and kind.kind in ("list", "map", "type"))


def runtime_name(kind: CelType) -> str:
    """Return the name that a type has at run time, without its parameters."""
    return declared_name(kind._replace(params=()))


def _type_of_literal(value: object) -> CelType:
    if value is None:
        return NULL
    for kind, found in ((bool, BOOL), (Uint, UINT), (int, INT), (float, DOUBLE), (str, STRING)):
        if isinstance(value, kind):
            return found
    return BYTES
