"""Estimates of the maximum cost of an expression before it runs, from the possible sizes of its variables.

kube-apiserver rejects rules of custom resources by this estimate, so the numbers are those of cel-go and of Kubernetes'
libraries.

Sources: github.com/google/cel-go v0.26.0, checker/cost.go; k8s.io/apiserver v0.36.3, pkg/cel/library/cost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from bayplan.cel.checker import Checker
from bayplan.cel.costs import TRAVERSAL
from bayplan.cel.declarations import FUNCTIONS
from bayplan.cel.evaluator import LIST_COST, MAP_COST, MESSAGE_COST
from bayplan.cel.function_costs import (
    FUNCTION_COSTS,
    MOST,
    UNKNOWN,
    Estimate,
    Size,
    added,
    allocating,
    number_of,
    plus,
    product,
    scaled,
    times,
    union,
)
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

_MAPS = ("transformMap", "transformMapEntry")
_CHECK_COST = 350_000
_NAMED_FORMAT_PATTERN, _NAMED_FORMAT_SIZE = 128, 64


Path: TypeAlias = tuple[str, ...]


class Entries(NamedTuple):
    """The sizes of the elements of a list or map that an expression constructs.

    Attributes:
        is_list: whether the value is a list.
        key: the sizes of the keys, or of the indexes of a list.
        value: the sizes of the values.
    """

    is_list: bool
    key: Size
    value: Size


class _Local(NamedTuple):
    path: Path
    size: Size | None
    entries: Entries | None


def estimate_cost(node: Node, checker: Checker, size_at: Callable[[Path], Size | None]) -> int:
    """Return the estimated maximum cost of a checked expression.

    Args:
        node: the expression.
        checker: the checker after it has checked the expression.
        size_at: returns the sizes of the value at a path of field names, without the variable, or None if they are
            unknown. ``@items``, ``@keys`` and ``@values`` stand for the elements of lists and maps.
    """
    return _Estimator(checker, size_at).cost(node)


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
        """Return the maximum cost of a node."""
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
                return plus(MESSAGE_COST, *(self.cost(value) for _, value, _, _ in node.entries))
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
            return plus(1, self.cost(node.operand))
        operand = self.cost(node.operand)
        if node.test:
            return operand
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return plus(operand, 1 if self._checker.type_of(node.operand).kind in ("map", "object", "param") else 0)

    def _list(self, node: ListNode) -> int:
        total = plus(LIST_COST, *(self.cost(item) for item in node.items))
        size = Size(MOST if node.items else 0, 0)
        for item in node.items:
            size = union(size, self._size(item))
        self._entries[id(node)] = Entries(True, Size(1, 1), size)
        return total

    def _map(self, node: MapNode) -> int:
        total = MAP_COST
        keys = values = Size(MOST if node.entries else 0, 0)
        for key, value, _ in node.entries:
            total = plus(total, self.cost(key), self.cost(value))
            keys, values = union(keys, self._size(key)), union(values, self._size(value))
        self._entries[id(node)] = Entries(False, keys, values)
        return total

    def _iterated(self, node: Fold) -> dict[str, _Local]:
        """Return the paths and sizes of a macro's variables, by name."""
        entries, path = self._entries_of(node.range), self._path(node.range)
        is_list = entries.is_list if entries is not None else self._checker.type_of(node.range).kind == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), entries.key if entries else None, None)
        value = _Local((*path, "@items" if is_list else "@values"), entries.value if entries else None, None)
        if len(node.variables) == 2:
            return dict(zip(node.variables, (key, value), strict=True))
        return {node.variables[0]: value if is_list else key}

    def _fold(self, node: Fold) -> int:
        """Return the cost of a macro: that of its range, and that of cel-go's loop for each element."""
        over = self.cost(node.range)
        with self._with(**self._iterated(node)):
            condition = self.cost(node.condition) if node.condition is not None else 0
            transform = self.cost(node.transform) if node.transform is not None else 0
            item = self._size(node.transform) if node.transform is not None else None
            if node.kind == "filter":
                item = self._size(Ident(node.variables[0], node.at))
        count = self._size(node.range)
        start, end = (LIST_COST, 1) if node.kind not in ("all", "exists", "exists_one", *_MAPS) else (0, 1)
        match node.kind:
            case "all" | "exists":
                step = plus(condition, 3 if node.kind == "all" else 4)
            case "exists_one":
                step, end = plus(condition, 2), 2
            case "filter":
                step = plus(condition, LIST_COST + 3)
            case "transformMap" | "transformMapEntry":
                start, step = MAP_COST, plus(condition, transform, 3)
            case _:
                step = plus(condition, transform, LIST_COST + 2)
        if node.kind in ("all", "exists", "exists_one"):
            self._sizes[id(node)] = Size(1, 1)
        else:
            self._sizes[id(node)] = count
            if item is not None and node.kind not in _MAPS:
                self._entries[id(node)] = Entries(True, Size(0, 1), Size(0, item.most))
        return plus(over, start, times(count.most, step), end)

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
            return plus(LIST_COST, value, body)
        # cel-go's expansion tests whether there is a value, then binds it.
        bound = plus(LIST_COST, 1, value, body, 1 if node.kind == "optMap" else 0)
        return plus(1, value, bound)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> int:
        if node.function == "dyn" and node.target is None and len(node.args) == 1:
            argument = self.cost(node.args[0])
            self._copy_sizes(node, node.args[0])
            return plus(1, argument)
        costs = [self.cost(arg) for arg in node.args]
        if node.function in ("_&&_", "_||_"):
            return plus(*costs)
        name, target = node.function, node.target
        if target is not None:
            prefix = qualified_name(target)
            if prefix is not None and f"{prefix}.{name}" in FUNCTIONS:
                name, target = f"{prefix}.{name}", None
        before = self.cost(target) if target is not None else 0
        cost, size = 0, None
        for overload in node.overloads:
            found = self._function(node, name, target, overload.args)
            cost = max(cost, found.cost)
            if found.size is not None:
                size = found.size if size is None else union(size, found.size)
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
            return plus(before, costs[0], max(costs[1], costs[2]))
        return plus(before, cost, *costs)

    def _function(self, node: Call, name: str, target: Node | None, kinds: tuple[CelType, ...]) -> Estimate:
        """Return the cost of one overload without the cost of its arguments, and the size of the result."""
        args = node.args
        if name in OPERATORS:
            return self._operator(node, name, kinds)
        if name in FUNCTION_COSTS and len(kinds) > 0:
            found = FUNCTION_COSTS[name](self, target, args, kinds)
            if found is not None:
                return found
        if name.startswith("sets.") and len(args) == 2:
            factor = 2 if name == "sets.equivalent" else 1
            size = product(self._size(args[0]), self._size(args[1]))
            return Estimate(plus(1, scaled(size.most, factor)))
        return self._list_function(name, target, args, kinds) or Estimate(1)

    def _operator(self, node: Call, name: str, kinds: tuple[CelType, ...]) -> Estimate:
        args = node.args
        if name == "_?_:_":
            entries = [self._entries_of(arg) for arg in args[1:]]
            self._join_entries(node, entries)
            return Estimate(0, union(self._size(args[1]), self._size(args[2])))
        left, right = self._size(args[0]), self._size(args[1])
        if name == "@in":
            return Estimate(right.most if kinds[1].kind == "list" else 1)
        if name == "_+_":
            if kinds[0] not in (STRING, BYTES) and kinds[0].kind != "list":
                return Estimate(1)
            self._join_entries(node, [self._entries_of(arg) for arg in args])
            size = added(left, right)
            return Estimate(1 if kinds[0].kind == "list" else scaled(size.most, TRAVERSAL), size)
        if name == "_==_":
            known = self._equality(args)
            if known is not None:
                return Estimate(known)
        if name in ("_==_", "_!=_") or kinds[0] in (STRING, BYTES):
            return Estimate(scaled(min(left.most, right.most), TRAVERSAL))
        return Estimate(1)

    def _equality(self, args: tuple[Node, ...]) -> int | None:
        left, right = (self._checker.type_of(arg) for arg in args)
        if left != right:
            return None
        if left in (QUANTITY, SEMVER, IP, CIDR) or left.name.startswith("kubernetes.authorization."):
            return 1
        if left == FORMAT:
            return scaled(_NAMED_FORMAT_SIZE, TRAVERSAL)
        if left == URL:
            size = self._known_size(args[1])
            return scaled(size.most if size is not None else 1, TRAVERSAL)
        return None

    def _join_entries(self, node: Node, found: list[Entries | None]) -> None:
        first, second = found
        if first is not None and second is not None:
            joined = Entries(first.is_list, union(first.key, second.key), union(first.value, second.value))
            self._entries[id(node)] = joined

    def element_size(self, target: Node) -> tuple[CelType, Size] | None:
        """Return the type and sizes of a list's elements, or None if the node is not a list."""
        kind = self._checker.type_of(target)
        if not kind.params:
            return None
        path = self._path(target)
        return kind.params[0], (self._size_at((*path, "@items")[1:]) if path else None) or UNKNOWN

    def size(self, node: Node) -> Size:
        """Return the sizes of a node's value."""
        return self._size(node)

    def _list_function(
        self, name: str, target: Node | None, args: tuple[Node, ...], kinds: tuple[CelType, ...]
    ) -> Estimate | None:
        if name == "lists.range":
            return allocating(1, number_of(args[0], MOST))
        if target is None:
            return None
        most = self._size(target).most
        match name:
            case "slice":
                size = (number_of(args[1], most) - number_of(args[0], 0)) & MOST  # As uint64: it wraps around.
                return allocating(1, size)
            case "reverse" if kinds[0].kind == "list":
                return allocating(1, most)
            case "flatten":
                return allocating(number_of(args[0], MOST) if args else 1, most)
            case "distinct":
                return allocating(2, times(most, most))
            case "sort":
                return allocating(2 + _element_factor(kinds[0]), times(most, most))
            case _ if name == SORT_BY:
                keys = self._size(args[0]).most
                return allocating(2 + _element_factor(kinds[1]), times(keys, keys))
        return None


def _element_factor(kind: CelType) -> float:
    return TRAVERSAL if kind.params and kind.params[0] in (STRING, BYTES) else 0.0


OPERATORS = frozenset(("_?_:_", "@in", "_+_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"))
