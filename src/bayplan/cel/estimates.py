"""Estimate what an expression costs at most, before it runs, from the sizes that its variables may have.

kube-apiserver refuses rules of custom resources by this estimate, so the numbers are those of cel-go and of Kubernetes' libraries.

Sources: github.com/google/cel-go v0.26.0, checker/cost.go; k8s.io/apiserver v0.36.3, pkg/cel/library/cost.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from bayplan.cel.checker import Checker
from bayplan.cel.costs import REGEXP_TRAVERSAL, TRAVERSAL
from bayplan.cel.declarations import FUNCTIONS
from bayplan.cel.library_lists import SORT_BY
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
    CIDR,
    DOUBLE,
    DURATION,
    FORMAT,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    CelType,
    unwrap_optional,
)

MOST = (1 << 64) - 1
"""Larger sizes and costs count as this."""
_LIST, _MAP, _MESSAGE = 10, 30, 40
_CHECK_COST = 350_000
_NAMED_FORMAT_PATTERN, _NAMED_FORMAT_SIZE = 128, 64


class Size(NamedTuple):
    """The least and the largest size of a text, list or map."""

    least: int
    most: int


UNKNOWN = Size(0, MOST)
Path: TypeAlias = tuple[str, ...]


class Entries(NamedTuple):
    """The sizes of the keys and values of a list or map that an expression makes."""

    is_list: bool
    key: Size
    value: Size


class _Local(NamedTuple):
    path: Path
    size: Size | None
    entries: Entries | None


class _Estimate(NamedTuple):
    cost: int
    size: Size | None = None


def estimate_cost(node: Node, checker: Checker, size_at: Callable[[Path], Size | None]) -> int:
    """Return the largest cost of a checked expression.

    Args:
        node: the expression.
        checker: has checked it.
        size_at: returns the size of what a path of names leads to, the variable left out; ``@items``, ``@keys`` and
            ``@values`` lead into lists and maps. None if nothing is known.
    """
    return _Estimator(checker, size_at).cost(node)


def _times(left: int, right: int) -> int:
    return min(left * right, MOST)


def _plus(*costs: int) -> int:
    return min(sum(costs), MOST)


def _scaled(size: int, factor: float) -> int:
    scaled = float(size) * factor
    return MOST if scaled >= 2.0**64 else math.ceil(scaled)


def _union(left: Size, right: Size) -> Size:
    return Size(min(left.least, right.least), max(left.most, right.most))


def _added(left: Size, right: Size) -> Size:
    return Size(_plus(left.least, right.least), _plus(left.most, right.most))


def _product(left: Size, right: Size) -> Size:
    return Size(_times(left.least, right.least), _times(left.most, right.most))


def _is_scalar(kind: CelType) -> bool:
    kind, _ = unwrap_optional(kind)
    return kind in (BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT)


class _Estimator:
    def __init__(self, checker: Checker, size_at: Callable[[Path], Size | None]) -> None:
        self._checker, self._size_at = checker, size_at
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, Entries] = {}
        self._paths: dict[int, Path] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> int:
        """Return the largest cost of a node."""
        match node:
            case Literal():
                return 0
            case Ident():
                local = self._local(node.name)
                self._paths[id(node)] = (node.name,) if local is None else local.path
                return 1
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case MessageNode():
                return _plus(_MESSAGE, *(self.cost(value) for _, value, _, _ in node.entries))
            case Fold():
                return self._fold(node)
            case Bind():
                return self._bind(node)

    # --- sizes --------------------------------------------------------------------------------------------------------

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Node) -> Path:
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.path if local is not None else self._paths.get(id(node), ())

    def _known_size(self, node: Node) -> Size | None:
        found = self._sizes.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Literal):
            length = len(node.value) if isinstance(node.value, str | bytes) else 1
            return Size(length, length)
        if isinstance(node, ListNode | MapNode):
            length = len(node.items) if isinstance(node, ListNode) else len(node.entries)
            return Size(length, length)
        path = self._path(node)
        by_path = self._size_at(path[1:]) if path else None
        if by_path is not None:
            self._sizes[id(node)] = by_path
            return by_path
        if _is_scalar(self._checker.type_of(node)):
            return Size(1, 1)
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _size(self, node: Node) -> Size:
        return self._known_size(node) or UNKNOWN

    def _entries_of(self, node: Node) -> Entries | None:
        found = self._entries.get(id(node))
        if found is not None:
            return found
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.entries

    def _copy_sizes(self, target: Node, source: Node) -> None:
        size, entries = self._known_size(source), self._entries_of(source)
        if size is not None:
            self._sizes[id(target)] = size
        if entries is not None:
            self._entries[id(target)] = entries

    @contextmanager
    def _with(self, **variables: _Local) -> Iterator[None]:
        for name, local in variables.items():
            self._locals.setdefault(name, []).append(local)
        yield
        for name in variables:
            self._locals[name].pop()

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _select(self, node: Select) -> int:
        if node.optional:
            return _plus(1, self.cost(node.operand))
        operand = self.cost(node.operand)
        if node.test:
            return operand
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return _plus(operand, 1 if self._checker.type_of(node.operand).kind in ("map", "object", "param") else 0)

    def _list(self, node: ListNode) -> int:
        total = _plus(_LIST, *(self.cost(item) for item in node.items))
        size = Size(MOST if node.items else 0, 0)
        for item in node.items:
            size = _union(size, self._size(item))
        self._entries[id(node)] = Entries(True, Size(1, 1), size)
        return total

    def _map(self, node: MapNode) -> int:
        total = _MAP
        keys = values = Size(MOST if node.entries else 0, 0)
        for key, value, _ in node.entries:
            total = _plus(total, self.cost(key), self.cost(value))
            keys, values = _union(keys, self._size(key)), _union(values, self._size(value))
        self._entries[id(node)] = Entries(False, keys, values)
        return total

    def _iterated(self, node: Fold) -> dict[str, _Local]:
        """Return what a macro knows about its variables: where they come from, and their sizes."""
        entries, path = self._entries_of(node.range), self._path(node.range)
        is_list = entries.is_list if entries is not None else self._checker.type_of(node.range).kind == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), entries.key if entries else None, None)
        value = _Local((*path, "@items" if is_list else "@values"), entries.value if entries else None, None)
        if len(node.variables) == 2:
            return dict(zip(node.variables, (key, value), strict=True))
        return {node.variables[0]: value if is_list else key}

    def _fold(self, node: Fold) -> int:
        """Return the cost of a macro: of its range, and for each element of what cel-go's loop does."""
        over = self.cost(node.range)
        with self._with(**self._iterated(node)):
            condition = self.cost(node.condition) if node.condition is not None else 0
            transform = self.cost(node.transform) if node.transform is not None else 0
            item = self._size(node.transform) if node.transform is not None else None
            if node.kind == "filter":
                item = self._size(Ident(node.variables[0], node.at))
        count = self._size(node.range)
        start, end = (_LIST, 1) if node.kind not in ("all", "exists", "exists_one", "transformMap") else (0, 1)
        match node.kind:
            case "all" | "exists":
                step = _plus(condition, 3 if node.kind == "all" else 4)
            case "exists_one":
                step, end = _plus(condition, 2), 2
            case "filter":
                step = _plus(condition, _LIST + 3)
            case "transformMap":
                start, step = _MAP, _plus(condition, transform, 3)
            case _:
                step = _plus(condition, transform, _LIST + 2)
        if node.kind in ("all", "exists", "exists_one"):
            self._sizes[id(node)] = Size(1, 1)
        else:
            self._sizes[id(node)] = count
            if item is not None and node.kind != "transformMap":
                self._entries[id(node)] = Entries(True, Size(0, 1), Size(0, item.most))
        return _plus(over, start, _times(count.most, step), end)

    def _bind(self, node: Bind) -> int:
        value = self.cost(node.value)
        local = _Local(self._path(node.value), self._known_size(node.value), self._entries_of(node.value))
        if node.kind != "bind":
            local = _Local((), None, None)
        with self._with(**{node.name: local}):
            body = self.cost(node.body)
            if node.kind == "bind":
                self._copy_sizes(node, node.body)
        if node.kind == "bind":
            return _plus(_LIST, value, body)
        # The macro asks whether there is a value, and binds it.
        bound = _plus(_LIST, 1, value, body, 1 if node.kind == "optMap" else 0)
        return _plus(1, value, bound)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> int:
        if node.function == "dyn" and node.target is None and len(node.args) == 1:
            argument = self.cost(node.args[0])
            self._copy_sizes(node, node.args[0])
            return _plus(1, argument)
        costs = [self.cost(arg) for arg in node.args]
        if node.function in ("_&&_", "_||_"):
            return _plus(*costs)
        name, target = node.function, node.target
        if target is not None:
            prefix = qualified_name(target)
            if prefix is not None and f"{prefix}.{name}" in FUNCTIONS:
                name, target = f"{prefix}.{name}", None
        before = self.cost(target) if target is not None else 0
        cost, size = 0, None
        for overload in self._checker.overloads.get(id(node), []):
            found = self._function(node, name, target, overload.args)
            cost = max(cost, found.cost)
            if found.size is not None:
                size = found.size if size is None else _union(size, found.size)
            if name == "_[_]" and overload.args[0].kind in ("list", "map"):
                entries = self._entries_of(node.args[0])
                size = entries.value if entries is not None else None
                inner = "@items" if overload.args[0].kind == "list" else "@values"
                self._paths[id(node)] = (*self._path(node.args[0]), inner)
            if size is None:
                size = self._known_size(node)
        if size is not None:
            self._sizes[id(node)] = size
        if name == "_?_:_":
            return _plus(before, costs[0], max(costs[1], costs[2]))
        return _plus(before, cost, *costs)

    def _function(self, node: Call, name: str, target: Node | None, kinds: tuple[CelType, ...]) -> _Estimate:
        """Return the cost of one way to call a function, without that of its arguments, and the size of the result."""
        args = node.args
        if name in _OPERATORS:
            return self._operator(node, name, kinds)
        if name in _TEXTS and len(kinds) > 0:
            found = _TEXTS[name](self, target, args, kinds)
            if found is not None:
                return found
        if name.startswith("sets.") and len(args) == 2:
            factor = 2 if name == "sets.equivalent" else 1
            size = _product(self._size(args[0]), self._size(args[1]))
            return _Estimate(_plus(1, _scaled(size.most, factor)))
        return self._list_function(name, target, args, kinds) or _Estimate(1)

    def _operator(self, node: Call, name: str, kinds: tuple[CelType, ...]) -> _Estimate:
        args = node.args
        if name == "_?_:_":
            entries = [self._entries_of(arg) for arg in args[1:]]
            self._join_entries(node, entries)
            return _Estimate(0, _union(self._size(args[1]), self._size(args[2])))
        left, right = self._size(args[0]), self._size(args[1])
        if name == "@in":
            return _Estimate(right.most if kinds[1].kind == "list" else 1)
        if name == "_+_":
            if kinds[0] not in (STRING, BYTES) and kinds[0].kind != "list":
                return _Estimate(1)
            self._join_entries(node, [self._entries_of(arg) for arg in args])
            size = _added(left, right)
            return _Estimate(1 if kinds[0].kind == "list" else _scaled(size.most, TRAVERSAL), size)
        if name == "_==_":
            known = self._equality(args)
            if known is not None:
                return _Estimate(known)
        if name in ("_==_", "_!=_") or kinds[0] in (STRING, BYTES):
            return _Estimate(_scaled(min(left.most, right.most), TRAVERSAL))
        return _Estimate(1)

    def _equality(self, args: tuple[Node, ...]) -> int | None:
        left, right = (self._checker.type_of(arg) for arg in args)
        if left != right:
            return None
        if left in (QUANTITY, SEMVER, IP, CIDR) or left.name.startswith("kubernetes.authorization."):
            return 1
        if left == FORMAT:
            return _scaled(_NAMED_FORMAT_SIZE, TRAVERSAL)
        if left == URL:
            size = self._known_size(args[1])
            return _scaled(size.most if size is not None else 1, TRAVERSAL)
        return None

    def _join_entries(self, node: Node, found: list[Entries | None]) -> None:
        first, second = found
        if first is not None and second is not None:
            joined = Entries(first.is_list, _union(first.key, second.key), _union(first.value, second.value))
            self._entries[id(node)] = joined

    def element_size(self, target: Node) -> tuple[CelType, Size] | None:
        """Return type and size of the elements of a list; None for anything else."""
        kind = self._checker.type_of(target)
        if not kind.params:
            return None
        path = self._path(target)
        return kind.params[0], (self._size_at((*path, "@items")[1:]) if path else None) or UNKNOWN

    def size(self, node: Node) -> Size:
        """Return the size of a node."""
        return self._size(node)

    def _list_function(
        self, name: str, target: Node | None, args: tuple[Node, ...], kinds: tuple[CelType, ...]
    ) -> _Estimate | None:
        if name == "lists.range":
            return _allocating(1, _number(args[0], MOST))
        if target is None:
            return None
        most = self._size(target).most
        match name:
            case "slice":
                size = max(0, _number(args[1], most) - _number(args[0], 0))
                return _allocating(1, size)
            case "reverse" if kinds[0].kind == "list":
                return _allocating(1, most)
            case "flatten":
                return _allocating(_number(args[0], MOST) if args else 1, most)
            case "distinct":
                return _allocating(2, _times(most, most))
            case "sort":
                return _allocating(2 + _element_factor(kinds[0]), _times(most, most))
            case _ if name == SORT_BY:
                keys = self._size(args[0]).most
                return _allocating(2 + _element_factor(kinds[1]), _times(keys, keys))
        return None


def _element_factor(kind: CelType) -> float:
    return TRAVERSAL if kind.params and kind.params[0] in (STRING, BYTES) else 0.0


def _allocating(factor: float, size: int) -> _Estimate:
    return _Estimate(_plus(1, _LIST, _scaled(size, factor)), Size(size, size))


def _number(node: Node, default: int) -> int:
    return node.value if isinstance(node, Literal) and isinstance(node.value, int) else default


_Text: TypeAlias = "Callable[[_Estimator, Node | None, tuple[Node, ...], tuple[CelType, ...]], _Estimate | None]"


def _read_argument(factor: float = TRAVERSAL, *, gives_size: bool = False) -> _Text:
    """A function that reads its first argument once."""

    def estimate(of: _Estimator, _target: Node | None, args: tuple[Node, ...], _kinds: object) -> _Estimate | None:
        if not args:
            return None
        size = of.size(args[0])
        return _Estimate(_scaled(size.most, factor), size if gives_size else None)

    return estimate


def _read_target(of: _Estimator, target: Node | None, _args: object, _kinds: object) -> _Estimate | None:
    if target is None:
        return None
    size = of.size(target)
    return _Estimate(_scaled(size.most, TRAVERSAL), size)


def _formatted(of: _Estimator, target: Node | None, _args: object, _kinds: object) -> _Estimate | None:
    return None if target is None else _Estimate(_scaled(of.size(target).most, TRAVERSAL))


def _nominal(*_: object) -> _Estimate:
    return _Estimate(1)


def _authorized(*_: object) -> _Estimate:
    return _Estimate(_CHECK_COST)


def _compared(of: _Estimator, target: Node | None, _args: object, _kinds: object) -> _Estimate | None:
    """A function that compares all elements of a list, or reads a text."""
    if target is None:
        return None
    size, element = of.size(target), of.element_size(target)
    if element is None:
        return _Estimate(_scaled(size.most, TRAVERSAL))
    each = _plus(1, _scaled(element[1].most, TRAVERSAL)) if element[0] in (STRING, BYTES) else 1
    return _Estimate(_times(size.most, each))


def _matched(of: _Estimator, target: Node | None, args: tuple[Node, ...], _kinds: object) -> _Estimate | None:
    if target is None or not args:
        return None
    text = _scaled(_plus(of.size(target).most, 1), TRAVERSAL)
    return _Estimate(_times(text, _scaled(of.size(args[0]).most, REGEXP_TRAVERSAL)))


def _found(of: _Estimator, target: Node | None, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> _Estimate | None:
    found = _matched(of, target, args, kinds)
    return None if found is None or target is None else _Estimate(found.cost, Size(0, of.size(target).most))


def _searched(of: _Estimator, target: Node | None, args: tuple[Node, ...], _kinds: object) -> _Estimate | None:
    if target is None or len(args) != 1:
        return None
    return _Estimate(_times(_scaled(of.size(target).most, TRAVERSAL), _scaled(of.size(args[0]).most, TRAVERSAL)))


def _replaced(of: _Estimator, target: Node | None, args: tuple[Node, ...], _kinds: object) -> _Estimate | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = of.size(target), of.size(args[0]), of.size(args[1])
    if old.least == 0:
        most = _plus(_times(_plus(size.most, 1), new.most), size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = _times(math.ceil(size.most / old.least), new.most)
    if old.most == 0:
        least = _plus(_times(_plus(size.least, 1), new.least), size.least)
    elif old.most <= new.least:
        least = size.least
    else:
        least = _times(math.ceil(size.least / old.most), new.least)
    return _Estimate(_scaled(size.most, 2 * TRAVERSAL), Size(least, most))


def _split(of: _Estimator, target: Node | None, args: tuple[Node, ...], _kinds: object) -> _Estimate | None:
    if target is None:
        return None
    size = of.size(target)
    most = _number(args[1], size.most) if len(args) > 1 else size.most
    return _Estimate(_scaled(size.most, 2 * TRAVERSAL), Size(0, most % (MOST + 1)))


def _joined(of: _Estimator, target: Node | None, args: tuple[Node, ...], _kinds: object) -> _Estimate | None:
    if target is None:
        return None
    count, element = of.size(target), of.element_size(target)
    size = _product(count, element[1]) if element is not None else Size(0, 0)
    if args:
        between = Size(max(0, count.least - 1), max(0, count.most - 1))
        size = _added(size, _product(of.size(args[0]), between))
    return _Estimate(_scaled(size.most, TRAVERSAL), size)


def _contains_address(of: _Estimator, _target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> _Estimate:
    text = _scaled(of.size(args[0]).most, TRAVERSAL) if kinds[-1] == STRING else 0
    return _Estimate(_plus(_scaled(32, TRAVERSAL), text))


def _contains_network(of: _Estimator, target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> _Estimate:
    inner = _contains_address(of, target, args, kinds)
    return _Estimate(_plus(inner.cost, _scaled(16, TRAVERSAL), 1))


def _address(
    of: _Estimator, target: Node | None, args: tuple[Node, ...], kinds: tuple[CelType, ...]
) -> _Estimate | None:
    return _Estimate(1) if target is not None else _read_argument()(of, target, args, kinds)


def _as_bytes(of: _Estimator, _target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> _Estimate | None:
    if kinds[0] != STRING:
        return None
    size = of.size(args[0])
    return _Estimate(_scaled(size.most, TRAVERSAL), Size(size.least, min(size.most * 4, MOST)))


def _as_text(of: _Estimator, _target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> _Estimate | None:
    if kinds[0] != BYTES:
        return None
    size = of.size(args[0])
    return _Estimate(_scaled(size.most, TRAVERSAL), Size(size.least // 4, size.most))


def _quoted(of: _Estimator, _target: object, args: tuple[Node, ...], _kinds: object) -> _Estimate:
    size = of.size(args[0])
    return _Estimate(_scaled(size.most, TRAVERSAL), Size(_plus(size.least, 2), _plus(_times(size.most, 2), 2)))


def _validated(of: _Estimator, _target: object, args: tuple[Node, ...], _kinds: object) -> _Estimate:
    read = _scaled(of.size(args[0]).most, TRAVERSAL)
    return _Estimate(_scaled(read, _NAMED_FORMAT_PATTERN * REGEXP_TRAVERSAL))


def _selected(of: _Estimator, _target: object, args: tuple[Node, ...], _kinds: object) -> _Estimate:
    size = of.size(args[0]).most
    requirements = _scaled(_scaled(size, 0.5), _LIST + _MESSAGE)
    return _Estimate(_plus(_LIST, _scaled(size, TRAVERSAL), requirements))


_OPERATORS = frozenset(("_?_:_", "@in", "_+_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"))
_TEXTS: Mapping[str, _Text] = {
    **dict.fromkeys(("startsWith", "endsWith"), _read_argument()),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _read_argument()),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _read_argument(gives_size=True)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read_target),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compared),
    **dict.fromkeys(("find", "findAll"), _found),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selected),
    "ip.isCanonical": _read_argument(2 * TRAVERSAL),
    "format": _formatted,
    "matches": _matched,
    "contains": _searched,
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "ip": _address,
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "bytes": _as_bytes,
    "string": _as_text,
    "strings.quote": _quoted,
    "validate": _validated,
    "check": _authorized,
    "format.named": _nominal,
}
"""Functions whose cost depends on sizes, by name."""
