"""Label and field selectors of lists and watches: parsed as apimachinery does, with its error messages."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from bayplan.apiserver.model.errors import bad_request
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.selectors import Operator, Requirement, parse_int64, quote

_TOKEN = re.compile(r"\s*(!=|==|=|>|<|!|\(|\)|,|[^\s!=<>(),]+)")
_SET_OPERATORS: dict[str, Operator] = {"in": "In", "notin": "NotIn"}


class FieldRequirement(msgspec.Struct, frozen=True):
    """One requirement on a field: equal to a value, or not."""

    field: str
    value: str
    negated: bool


class _LabelParser:
    """A recursive-descent parser of label selectors."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            token = self.peek()
            if not token:
                return found
            if token == ",":
                raise _misplaced(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self.requirement())
            token = self.next()
            if not token:
                return found
            if token != ",":
                raise _misplaced(f"found '{token}', expected: ',' or 'end of string'")
            if not self.peek() or self.peek() == ",":
                raise _misplaced(f"found '{self.peek()}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        negated = self.peek() == "!"
        if negated:
            self.next()
        key = self.next()
        if not key or key in "!=<>(),":
            raise _unparsable(f"found '{key}', expected: identifier")
        _check_key(key)
        if negated:
            return Requirement(key, "DoesNotExist")
        operator = self.peek()
        if operator in ("", ","):
            return Requirement(key, "Exists")
        self.next()
        if operator in _SET_OPERATORS:
            return Requirement(key, _SET_OPERATORS[operator], self.values())
        if operator in ("=", "==", "!="):
            return Requirement(key, "NotIn" if operator == "!=" else "In", (self.value(key),))
        if operator in ("<", ">"):
            return Requirement(key, "Gt" if operator == ">" else "Lt", (self.number(key),))
        raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def value(self, key: str) -> str:
        token = self.peek()
        if token in ("=", "==", "!=", "<", ">"):
            raise _unparsable(f"found '{token}', expected: identifier")
        if token in ("", ","):
            return ""
        self.next()
        problems = check_label_value(token)
        if problems:
            raise _unparsable(f"values[0][{key}]: Invalid value: {quote(token)}: {'; '.join(problems)}")
        return token

    def number(self, key: str) -> str:
        token = self.next()
        if parse_int64(token) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _unparsable(f"values[0]: Invalid value: {quote(token)}: {detail}")
        return token

    def values(self) -> tuple[str, ...]:
        token = self.next()
        if token != "(":
            raise _unparsable(f"found '{token}' expected: '('")
        values: list[str] = []
        expect_value = True
        while True:
            token = self.next()
            if token == ")":
                if expect_value:
                    values.append("")
                return tuple(dict.fromkeys(values))
            if token == ",":
                if expect_value:
                    values.append("")
                expect_value = True
            elif token and expect_value:
                values.append(token)
                expect_value = False
            else:
                rest = "',', ')' or identifier" if expect_value and not values else "',', or ')'"
                raise _unparsable(f"found '{token}', expected: {rest}")


def _check_key(key: str) -> None:
    problems = check_qualified_name(key)
    if problems:
        raise _unparsable(f"<nil>: Invalid value: {quote(key)}: {'; '.join(problems)}")


class _Unparsable(ValueError):
    """A selector that cannot be parsed."""


def _unparsable(text: str) -> _Unparsable:
    return _Unparsable(f"unable to parse requirement: {text}")


def _misplaced(text: str) -> _Unparsable:
    """A separator between requirements is invalid, not a requirement."""
    return _Unparsable(text)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a label selector.

    Raises:
        ApiError: it cannot be parsed.
    """
    if not text.strip():
        return ()
    try:
        return tuple(_LabelParser(text).parse())
    except _Unparsable as problem:
        raise bad_request(str(problem)) from problem


def parse_fields(text: str, refuse: Callable[[str], str]) -> tuple[FieldRequirement, ...]:
    """Return the requirements of a field selector.

    Args:
        text: terms ``field=value``, ``field==value``, ``field!=value``, separated by commas; backslash escapes.
        refuse: the function that returns the error for an unsupported field, and None for other fields.

    Raises:
        ApiError: it cannot be parsed, or names a field that is not supported.
    """
    found: list[FieldRequirement] = []
    for term in _split_terms(text):
        if not term:
            continue
        match = re.fullmatch(r"((?:[^\\=!]|\\.)*?)(!=|==|=)(.*)", term, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        found.append(FieldRequirement(match[1], _unescaped(match[3]), match[2] == "!="))
    for requirement in found:
        problem = refuse(requirement.field)
        if problem:
            raise bad_request(problem)
    return tuple(found)


def _unescaped(text: str) -> str:
    """Return the value of a term without its backslashes."""
    for match in re.finditer(r"\\(.?)|([,=])", text, re.DOTALL):
        if match[2]:
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(match[2])}")
        if not match[1] or match[1] not in "\\,=":
            raise bad_request(f"invalid field selector: invalid escape sequence: {match[0]}")
    return re.sub(r"\\([\\,=])", r"\1", text)


def _split_terms(text: str) -> list[str]:
    return re.findall(r"(?:[^\\,]|\\.)+", text)
