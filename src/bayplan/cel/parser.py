"""The parser: builds the syntax tree of an expression, and expands macros."""

from __future__ import annotations

import math
from collections.abc import Callable

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
CONSTANTS = {"true": True, "false": False, "null": None}
RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
MAX_DEPTH = 250
NO_IDENTIFIER = "argument is not an identifier"
TOO_DEEP = "max recursion depth exceeded"
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
        self._depths = {"expression": 0, "relation": 0, "sum": 0, "member": 0}
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
        self._check_depth(node)
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

    def _enter(self, rule: str) -> None:
        """Enter a rule of the grammar.

        Raises:
            CompileProblem: rules of this type are nested too deeply.
        """
        self._depths[rule] += 1
        if self._depths[rule] > MAX_DEPTH:
            raise self._source.unplaced(f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _leave(self, rule: str, operators: int = 0) -> None:
        """Leave a rule after a chain of operators. As in cel-go, which counts them as left, though they were not entered."""
        self._depths[rule] = max(0, self._depths[rule] - 1 - operators)

    def _longer(self, operators: int) -> int:
        """Return the length of a chain with one more operator, each of which is nested in the next one.

        Raises:
            CompileProblem: there are too many.
        """
        if operators == MAX_DEPTH:
            raise self._source.unplaced(TOO_DEEP)
        return operators + 1

    def _check_depth(self, root: Node) -> None:
        """Check the depth of the tree, of which cel-go counts only some nodes.

        Raises:
            CompileProblem: the tree is too deep.
        """
        left = [(root, counts(root))]
        while left:
            node, depth = left.pop()
            if depth > MAX_DEPTH:
                raise self._source.unplaced(TOO_DEEP)
            left.extend((part, depth + counts(part)) for part in parts_of(node))

    def _conditional(self) -> Node:
        self._enter("expression")
        node = self._any("||", lambda: self._any("&&", self._relation))
        if self._is("?"):
            at = self._next().at
            then = self._any("||", lambda: self._any("&&", self._relation))
            self._expect(":")
            node = Call("_?_:_", None, (node, then, self._conditional()), at)
        self._leave("expression")
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
        self._enter("relation")
        node, count = self._sum(), 0
        while self._is(*RELATIONS):
            count = self._longer(count)
            token = self._next()
            name = "@in" if token.text == "in" else f"_{token.text}_"
            self._enter("relation")
            node = Call(name, None, (node, self._sum()), token.at)
            self._leave("relation")
        self._leave("relation", count)
        return node

    def _sum(self) -> Node:
        self._enter("sum")
        node, count = self._product()
        while self._is("+", "-"):
            count = self._longer(count)
            token = self._next()
            self._enter("sum")
            right, inner = self._product()
            self._leave("sum", inner)
            node = Call(f"_{token.text}_", None, (node, right), token.at)
        self._leave("sum", count)
        return node

    def _product(self) -> tuple[Node, int]:
        """Return a product, and its number of operators."""
        node, count = self._unary(), 0
        while self._is("*", "/", "%"):
            count = self._longer(count)
            token = self._next()
            self._enter("sum")
            node = Call(f"_{token.text}_", None, (node, self._unary()), token.at)
            self._leave("sum")
        return node, count

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
            return self._member(token)
        if self._is("-") and self._tokens[self._place + 1].kind in ("int", "float"):
            node = self._member(self._next())
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

    def _member(self, sign: Token | None = None) -> Node:
        """Parse a value with its field accesses, indexes and method calls. `sign`: the minus of a number, already read."""
        self._enter("member")
        node, count = self._primary() if sign is None else self._negative(sign), 0
        while True:
            name = qualified_name(node) if self._is("{") else None
            if self._is(".", "["):
                count = self._longer(count)
                node = self._part(node, self._next())
            elif name is not None:
                node, count = self._message(name, self._next()), 0
            else:
                self._leave("member", count)
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
        self._check_not_literal(name)
        if name.kind != "ident":
            shown = "" if name.kind == "end" else name.text
            raise self._problem(name, f"no viable alternative at input '.{shown}'")
        if self._is("(") and not optional:
            opening = self._next()
            args = self._arguments(")")
            return self._member_call(node, name.text, args, opening.at)
        return Select(node, name.text, token.at, optional=optional)

    def _check_not_literal(self, name: Token) -> None:
        """Raise CompileProblem if the name of a field or a global function is a keyword."""
        if name.kind == "ident" and name.text in (*CONSTANTS, "in"):
            raise self._problem(name, f"mismatched input '{name.text}' expecting IDENTIFIER")

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
            self._check_not_literal(self._token)
            return self._name(self._next())
        expected = EXPECTED.replace("'!'", "'!', '?'") if token.at == self._index_at else EXPECTED
        raise self._problem(token, f"mismatched input '{token.text}' expecting {expected}")

    def _name(self, token: Token) -> Node:
        if token.text in CONSTANTS:
            return Literal(CONSTANTS[token.text], token.at)
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

    def _skip_only_comma(self, closing: str) -> None:
        """Skip the comma of ``[,]`` and ``{,}``, which the grammar allows."""
        if self._is(",") and self._tokens[self._place + 1].text == closing:
            self._next()

    def _list(self, opening: Token) -> Node:
        items, optional = list[Node](), set[int]()
        self._skip_only_comma("]")
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
        self._skip_only_comma("}")
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
        self._skip_only_comma("}")
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
        if name == "filter" and len(args) == 2:
            return Fold(name, target, (self._variable(args[0], NO_IDENTIFIER),), args[1], None, at)
        if name in ("all", "exists", "exists_one") and len(args) in (2, 3):
            return Fold(name, target, self._variables(args[:-1]), args[-1], None, at)
        if name == "map" and len(args) in (2, 3):
            condition = args[1] if len(args) == 3 else None
            return Fold("map", target, (self._variable(args[0], NO_IDENTIFIER),), condition, args[-1], at)
        if name in ("transformList", "transformMap", "transformMapEntry") and len(args) in (3, 4):
            condition = args[2] if len(args) == 4 else None
            return Fold(name, target, self._variables(args[:2]), condition, args[-1], at)
        if name == "sortBy" and len(args) == 2:
            return self._sort_by(target, args, at)
        if name in ("optMap", "optFlatMap") and len(args) == 2:
            problem = f"{name}() variable name must be a simple identifier"
            return Bind(name, self._variable(args[0], problem), target, args[1], at)
        if self._binds and name == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
            problem = "cel.bind() variable names must be simple identifiers"
            return Bind("bind", self._variable(args[0], problem), args[1], args[2], at)
        return Call(name, target, args, at)

    def _sort_by(self, target: Node, args: tuple[Node, ...], at: int) -> Node:
        if isinstance(target, Literal | MapNode):
            text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
            raise self._source.problem(_start(target), text)
        items = Ident(_SORTED, at)
        keys = Fold("map", items, (self._variable(args[0], NO_IDENTIFIER),), None, args[1], at)
        return Bind("bind", _SORTED, target, Call(SORT_BY, items, (keys,), at), at)

    def _variables(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        names = tuple(map(self._variable, nodes))
        if len(names) == 2 and names[0] == names[1]:
            raise self._source.problem(_start(nodes[1]), f"duplicate variable name: {names[0]}")
        return names

    def _variable(self, node: Node, problem: str = "argument must be a simple name") -> str:
        if not isinstance(node, Ident):
            raise self._source.problem(_start(node), problem)
        return node.name


def _start(node: Node) -> int:
    return node.at


_NOT_COUNTED = frozenset(("_&&_", "_||_", "!_", "-_"))


def counts(node: Node) -> int:
    """Return 1 for a node that counts for the depth of a tree: an operator between operands, or a member; 0 for others."""
    if not isinstance(node, Call) or node.target is not None:
        return int(isinstance(node, Select | Call | Fold | Bind))
    is_operator = node.function.startswith("_") or node.function == "@in"
    return int(is_operator and node.function not in _NOT_COUNTED)


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node consists of, in the source text."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.args if node.target is None else (node.target, *node.args)
        case ListNode():
            return node.items
        case MapNode():
            return tuple(part for key, value, _ in node.entries for part in (key, value))
        case MessageNode():
            return tuple(value for _, value, _, _ in node.entries)
        case Fold():
            return tuple(part for part in (node.range, node.condition, node.transform) if part is not None)
        case Bind(body=Call(args=(Fold() as keys,))) if node.name == _SORTED:
            return (node.value, *parts_of(keys)[1:])
        case Bind():
            return (node.value, node.body)
        case _:
            return ()
