"""The parser: builds the syntax tree of an expression, and expands macros."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayplan.cel.lexer import INT64, Token, tokens_of
from bayplan.cel.library_lists import SORT_BY
from bayplan.cel.problems import CompileProblem
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

RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
        *("package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
MAX_DEPTH = 200
EXPECTED = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_SORTED = "@__sortBy_input__"
"""The variable that stands for the list in the expansion of ``sortBy``. Expressions cannot contain this name."""


class Parser:
    """Parses one expression.

    Args:
        text: the text of the expression.
        binds: whether ``cel.bind`` is available, as in device selectors but not in admission.
    """

    def __init__(self, text: str, *, binds: bool = True) -> None:
        self._binds = binds
        self._source = Source(text)
        self._tokens = tokens_of(self._source)
        self._place = 0
        self._depths = {"condition": 0, "relation": 0, "sum": 0, "member": 0}
        # The position after an opening bracket, where "?" is also allowed.
        self._index_at = -1

    def parse(self) -> Node:
        """Return the syntax tree.

        Raises:
            CompileProblem: the text is not a valid expression.
        """
        node = self._conditional()
        token = self._token
        if token.kind != "end":
            kind = "extraneous" if self._tokens[self._place + 1].kind == "end" else "mismatched"
            raise self._problem(token, f"{kind} input '{token.text}' expecting <EOF>")
        return node

    # Tokens.

    @property
    def _token(self) -> Token:
        return self._tokens[self._place]

    def _is(self, *texts: str) -> bool:
        token = self._token
        return token.text in texts and token.kind in ("op", "ident")

    def _next(self) -> Token:
        token = self._token
        self._place += token.kind != "end"
        return token

    def _expect(self, text: str, *, or_comma: bool = False) -> Token:
        token = self._next()
        if token.text != text or token.kind != "op":
            if token.kind == "end" and not or_comma:
                raise self._problem(token, f"missing '{text}' at '<EOF>'")
            wanted = f"{{'{text}', ','}}" if or_comma else f"'{text}'"
            raise self._problem(token, f"mismatched input '{token.text}' expecting {wanted}")
        return token

    def _problem(self, token: Token, text: str) -> CompileProblem:
        return self._source.problem(token.at, f"Syntax error: {text}")

    # Operators, from the lowest to the highest precedence.

    @contextmanager
    def _rule(self, name: str) -> Iterator[Callable[[], None]]:
        """Enter a rule of the grammar, and yield the function that enters it once more.

        As in cel-go, each operator of a chain counts as one level of nesting.

        Raises:
            CompileProblem: rules of this type are nested too deeply.
        """
        depths, before = self._depths, self._depths[name]

        def enter() -> None:
            depths[name] += 1
            if depths[name] > MAX_DEPTH:
                raise self._source.problem(self._token.at, f"expression recursion limit exceeded: {MAX_DEPTH}")

        enter()
        yield enter
        depths[name] = before

    def _conditional(self) -> Node:
        with self._rule("condition"):
            node = self._any("||", lambda: self._any("&&", self._relation))
            if self._is("?"):
                at = self._next().at
                then = self._any("||", lambda: self._any("&&", self._relation))
                self._expect(":")
                node = Call("_?_:_", None, (node, then, self._conditional()), at)
        return node

    def _any(self, operator: str, operand: Callable[[], Node]) -> Node:
        """Parse a chain of one logical operator to a balanced tree, as cel-go does, so that its depth stays small."""
        operands, places = [operand()], list[int]()
        while self._is(operator):
            places.append(self._next().at)
            operands.append(operand())

        def tree(first: int, last: int) -> Node:
            if first > last:
                return operands[first]
            middle = (first + last + 1) // 2
            return Call(f"_{operator}_", None, (tree(first, middle - 1), tree(middle + 1, last)), places[middle])

        return tree(0, len(places) - 1)

    def _relation(self) -> Node:
        with self._rule("relation") as enter:
            node = self._sum()
            while self._is(*RELATIONS):
                enter()
                token = self._next()
                name = "@in" if token.text == "in" else f"_{token.text}_"
                node = Call(name, None, (node, self._sum()), token.at)
        return node

    def _sum(self) -> Node:
        with self._rule("sum") as enter:
            node = self._product(enter)
            while self._is("+", "-"):
                enter()
                token = self._next()
                node = Call(f"_{token.text}_", None, (node, self._product(enter)), token.at)
        return node

    def _product(self, enter: Callable[[], None]) -> Node:
        node = self._unary()
        while self._is("*", "/", "%"):
            enter()
            token = self._next()
            node = Call(f"_{token.text}_", None, (node, self._unary()), token.at)
        return node

    def _unary(self) -> Node:
        token = self._token
        if not self._is("!", "-"):
            return self._member()
        count = 0
        while self._is(token.text):
            self._next()
            count += 1
        following = self._token
        if token.text == "-" and following.kind in ("int", "float") and count % 2:
            # The sign is part of the number, because the smallest integer has no positive counterpart.
            return self._postfix(self._negative(token))
        if self._is("-") and self._tokens[self._place + 1].kind in ("int", "float"):
            node = self._postfix(self._negative(self._next()))
        else:
            node = self._member()
        if count % 2 == 0:
            return node
        return Call("!_" if token.text == "!" else "-_", None, (node,), token.at)

    def _negative(self, sign: Token) -> Node:
        token = self._next()
        if isinstance(token.value, float):
            return self._double(-token.value, sign.at)
        assert isinstance(token.value, int)
        if token.value > INT64:
            raise self._source.problem(sign.at, "invalid int literal")
        return Literal(-token.value, sign.at)

    def _double(self, value: float, at: int) -> Node:
        if math.isinf(value):
            raise self._source.problem(at, "invalid double literal")
        return Literal(value, at)

    def _member(self) -> Node:
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        with self._rule("member") as enter:
            while self._is(".", "["):
                enter()
                node = self._part(node, self._next())
            name = qualified_name(node) if self._is("{") else None
            if name is not None:
                node = self._postfix(self._message(name, self._next()))
        return node

    def _part(self, node: Node, token: Token) -> Node:
        """Parse a field access, an index or a method call on a value."""
        optional = self._is("?")
        if optional:
            self._next()
        if token.text == "[":
            self._index_at = self._token.at
            index = self._conditional()
            self._expect("]")
            return Call("_[?_]" if optional else "_[_]", None, (node, index), token.at)
        name = self._next()
        if name.kind != "ident":
            shown = "" if name.kind == "end" else name.text
            raise self._problem(name, f"no viable alternative at input '.{shown}'")
        if self._is("(") and not optional:
            opening = self._next()
            args = self._arguments(")")
            return self._member_call(node, name.text, args, opening.at)
        return Select(node, name.text, token.at, optional=optional)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        args = list[Node]()
        while not self._is(closing):
            args.append(self._conditional())
            if not self._is(","):
                break
            self._next()
            if self._is(closing) and closing == ")":
                raise self._problem(self._token, f"extraneous input '{closing}' expecting {EXPECTED}")
        self._expect(closing, or_comma=True)
        return tuple(args)

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "int":
            assert isinstance(token.value, int)
            if token.value >= INT64:
                raise self._source.problem(token.at, "invalid int literal")
            return Literal(token.value, token.at)
        if isinstance(token.value, float):
            return self._double(token.value, token.at)
        if token.kind in ("uint", "string", "bytes"):
            return Literal(token.value, token.at)
        if token.kind == "ident":
            return self._name(token)
        if token.text == "(":
            node = self._conditional()
            self._expect(")")
            return node
        if token.text == "[":
            return self._list(token)
        if token.text == "{":
            return self._map(token)
        if token.text == "." and self._token.kind == "ident":
            return self._name(self._next())
        expected = EXPECTED.replace("'!'", "'!', '?'") if token.at == self._index_at else EXPECTED
        raise self._problem(token, f"mismatched input '{token.text}' expecting {expected}")

    def _name(self, token: Token) -> Node:
        constants = {"true": True, "false": False, "null": None}
        if token.text in constants:
            return Literal(constants[token.text], token.at)
        if token.text in RESERVED:
            raise self._source.problem(token.at, f"reserved identifier: {token.text}")
        if not self._is("("):
            return Ident(token.text, token.at)
        opening = self._next()
        args = self._arguments(")")
        if token.text == "has" and len(args) == 1:
            field = args[0]
            if not isinstance(field, Select) or field.optional:
                raise self._source.problem(_start(field), "invalid argument to has() macro")
            return Select(field.operand, field.field, opening.at, test=True)
        return Call(token.text, None, args, opening.at)

    def _list(self, opening: Token) -> Node:
        items, optional = list[Node](), set[int]()
        while not self._is("]"):
            if self._is("?"):
                self._next()
                optional.add(len(items))
            items.append(self._conditional())
            if not self._is(","):
                break
            self._next()
        self._expect("]", or_comma=True)
        return ListNode(tuple(items), opening.at, frozenset(optional))

    def _map(self, opening: Token) -> Node:
        entries = list[tuple[Node, Node, bool]]()
        while not self._is("}"):
            optional = self._is("?")
            if optional:
                self._next()
            key = self._conditional()
            self._expect(":")
            entries.append((key, self._conditional(), optional))
            if not self._is(","):
                break
            self._next()
        self._expect("}", or_comma=True)
        return MapNode(tuple(entries), opening.at)

    def _message(self, type_name: str, opening: Token) -> Node:
        entries = list[tuple[str, Node, bool, int]]()
        while not self._is("}"):
            optional = self._is("?")
            if optional:
                self._next()
            name = self._next()
            if name.kind != "ident":
                raise self._problem(name, f"mismatched input '{name.text}' expecting {{'}}', '?', ',', IDENTIFIER}}")
            at = self._expect(":").at
            entries.append((name.text, self._conditional(), optional, at))
            if not self._is(","):
                break
            self._next()
        self._expect("}", or_comma=True)
        return MessageNode(type_name, tuple(entries), opening.at)

    # Macros.

    def _member_call(self, target: Node, name: str, args: tuple[Node, ...], at: int) -> Node:
        """Return the call of a member function, or the expansion of a macro."""
        if name == "existsOne" and len(args) == 3:
            name = "exists_one"
        elif name in ("exists_one", "filter") and len(args) == 3:
            return Call(name, target, args, at)
        if name in ("all", "exists", "exists_one", "filter") and len(args) in (2, 3):
            return Fold(name, target, self._variables(args[:-1]), args[-1], None, at)
        if name == "map" and len(args) in (2, 3):
            condition = args[1] if len(args) == 3 else None
            return Fold("map", target, (self._variable(args[0]),), condition, args[-1], at)
        if name in ("transformList", "transformMap", "transformMapEntry") and len(args) in (3, 4):
            condition = args[2] if len(args) == 4 else None
            return Fold(name, target, self._variables(args[:2]), condition, args[-1], at)
        if name == "sortBy" and len(args) == 2:
            return self._sort_by(target, args, at)
        if name in ("optMap", "optFlatMap") and len(args) == 2:
            return Bind(name, self._variable(args[0]), target, args[1], at)
        if self._binds and name == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
            if not isinstance(args[0], Ident):
                raise self._source.problem(_start(args[0]), "cel.bind() variable names must be simple identifiers")
            return Bind("bind", args[0].name, args[1], args[2], at)
        return Call(name, target, args, at)

    def _sort_by(self, target: Node, args: tuple[Node, ...], at: int) -> Node:
        if isinstance(target, Literal | MapNode):
            text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
            raise self._source.problem(_start(target), text)
        items = Ident(_SORTED, at)
        keys = Fold("map", items, (self._variable(args[0]),), None, args[1], at)
        return Bind("bind", _SORTED, target, Call(SORT_BY, items, (keys,), at), at)

    def _variables(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        names = tuple(map(self._variable, nodes))
        if len(names) == 2 and names[0] == names[1]:
            raise self._source.problem(_start(nodes[1]), f"duplicate variable name: {names[0]}")
        return names

    def _variable(self, node: Node) -> str:
        if not isinstance(node, Ident):
            raise self._source.problem(_start(node), "argument must be a simple name")
        return node.name


def _start(node: Node) -> int:
    return node.at
