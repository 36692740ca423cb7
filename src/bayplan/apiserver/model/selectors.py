"""Parsing of label and field selectors, with apimachinery's syntax and error messages."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from bayplan.apiserver.model.errors import bad_request
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.selectors import Operator, Requirement, parse_int64, quote

_TOKEN = re.compile(r"[ \t\r\n]*(!=|==|=|>|<|!|\(|\)|,|[^ \t\r\n!=<>(),]+)")
_SYMBOLS = frozenset(("!=", "==", "=", ">", "<", "!", "(", ")", ","))
_SET_OPERATORS: dict[str, Operator] = {"in": "In", "notin": "NotIn"}


class FieldRequirement(msgspec.Struct, frozen=True):
    """A requirement that a field equals a value, or differs from it if `negated`."""

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
            if token in _SYMBOLS and token != "!":
                raise _misplaced(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self.requirement())
            token = self.next()
            if not token:
                return found
            if token != ",":
                raise _misplaced(f"found '{token}', expected: ',' or 'end of string'")
            token = self.peek()
            if not token or (token in _SYMBOLS and token != "!"):
                raise _misplaced(f"found '{token}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        negated = self.peek() == "!"
        if negated:
            self.next()
        key = self.next()
        if not key or key in _SYMBOLS:
            raise _unparsable(f"found '{key}', expected: identifier")
        _check_key(key)
        operator = self.peek()
        if operator in ("", ","):
            return Requirement(key, "DoesNotExist" if negated else "Exists")
        if negated:
            # Upstream ends the requirement after a negated key, and reports an operator after it as a misplaced
            # separator.
            return Requirement(key, "DoesNotExist")
        self.next()
        if operator in _SET_OPERATORS:
            return self.checked(Requirement(key, _SET_OPERATORS[operator], self.values()))
        if operator in ("=", "==", "!="):
            return self.checked(Requirement(key, "NotIn" if operator == "!=" else "In", (self.value(),)))
        if operator in ("<", ">"):
            return self.checked(Requirement(key, "Gt" if operator == ">" else "Lt", (self.value(),)))
        raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def checked(self, found: Requirement) -> Requirement:
        """Return the requirement after checking its values."""
        problems = []
        if found.operator in ("Gt", "Lt") and parse_int64(found.values[0]) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems.append(f"values[0]: Invalid value: {quote(found.values[0])}: {why}")
        for index, value in enumerate(found.values):
            wrong = check_label_value(value)
            if wrong:
                problems.append(f"values[{index}][{found.key}]: Invalid value: {quote(value)}: {'; '.join(wrong)}")
        if problems:
            raise _unparsable(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return found

    def value(self) -> str:
        token = self.peek()
        if token in ("", ","):
            return ""
        if token in _SYMBOLS:
            raise _unparsable(f"found '{token}', expected: identifier")
        return self.next()

    def values(self) -> tuple[str, ...]:
        """Return the values in parentheses, sorted and without duplicates."""
        token = self.next()
        if token != "(":
            raise _unparsable(f"found '{token}' expected: '('")
        token = self.peek()
        if token == ")":
            self.next()
            return ("",)
        if not token or (token in _SYMBOLS and token != ","):
            raise _unparsable(f"found '{token}', expected: ',', ')' or identifier")
        found: set[str] = set()
        while True:
            token, after = self.next(), self.peek()
            if token == ",":
                # A comma with no value before or after it stands for an empty value.
                if not found or after in (",", ")"):
                    found.add("")
            elif not token or token in _SYMBOLS:
                raise _unparsable(f"found '{token}', expected: ',', or identifier")
            else:
                found.add(token)
                if after not in (",", ")"):
                    raise _unparsable(f"found '{after}', expected: ',' or ')'")
            if after == ")":
                self.next()
                return tuple(sorted(found))


def _check_key(key: str) -> None:
    problems = check_qualified_name(key)
    if problems:
        raise _unparsable(f"<nil>: Invalid value: {quote(key)}: {'; '.join(problems)}")


class _Unparsable(ValueError):
    """A selector that cannot be parsed."""


def _unparsable(text: str) -> _Unparsable:
    return _Unparsable(f"unable to parse requirement: {text}")


def _misplaced(text: str) -> _Unparsable:
    """Return the error for a wrong separator between requirements, which has no prefix."""
    return _Unparsable(text)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a label selector; an empty selector has none.

    Raises:
        ApiError: the selector cannot be parsed.
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
        text: terms ``field=value``, ``field==value`` or ``field!=value``, separated by commas; a backslash escapes.
        refuse: returns the error for an unsupported field, and "" for a supported one.

    Raises:
        ApiError: the selector cannot be parsed, or names a field that is not supported.
    """
    found: list[FieldRequirement] = []
    for term in sorted(_split_terms(text)):
        if not term:
            continue
        match = _FIELD_OPERATOR.search(term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        field, value = term[: match.start()], _unescaped(term[match.end() :])
        # Ignore a term that consists only of an operator: it selects everything.
        if field or value:
            found.append(FieldRequirement(field, value, match[0] == "!="))
    for requirement in found:
        problem = refuse(requirement.field)
        if problem:
            raise bad_request(problem)
    return tuple(found)


_FIELD_OPERATOR = re.compile("!=|==|=")


def _unescaped(text: str) -> str:
    """Return the value of a term with escapes replaced.

    Raises:
        ApiError: an escape is invalid, or a character must be escaped.
    """
    for match in re.finditer(r"\\(.?)|([,=])", text, re.DOTALL):
        if match[2]:
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(match[2])}")
        if not match[1] or match[1] not in "\\,=":
            raise bad_request(f"invalid field selector: invalid escape sequence: {match[0]}")
    return re.sub(r"\\([\\,=])", r"\1", text)


def _split_terms(text: str) -> list[str]:
    """Return the terms between commas; an escaped comma belongs to its term."""
    terms, start, escaped = [], 0, False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:index])
            start = index + 1
    return [*terms, text[start:]]
