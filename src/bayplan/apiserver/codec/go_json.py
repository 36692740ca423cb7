"""What Go's JSON decoder says of a text that is no JSON. Used only to word a refusal."""

from __future__ import annotations

_SPACE = " \t\r\n"
_DIGITS = "0123456789"
_END = "unexpected end of JSON input"


class _Problem(Exception):
    pass


def json_problem(text: str) -> str:
    """Return Go's error text for a text, or an empty string where Go would read it."""
    scanner = _Scanner(text)
    try:
        scanner.value("looking for beginning of value")
        scanner.space()
        if scanner.at < len(text):
            scanner.refuse("after top-level value")
    except _Problem as problem:
        return str(problem)
    except RecursionError:
        return "exceeded max depth"
    return ""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def refuse(self, context: str) -> None:
        if self.at >= len(self.text):
            raise _Problem(_END)
        letter = self.text[self.at]
        shown = {"'": r"'\''", '"': "'\"'"}.get(letter) or (f"'{letter}'" if letter.isprintable() else repr(letter))
        raise _Problem(f"invalid character {shown} {context}")

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def value(self, context: str) -> None:
        self.space()
        letter = self.peek()
        if letter == "{":
            self.object()
        elif letter == "[":
            self.array()
        elif letter == '"':
            self.string()
        elif letter in ("t", "f", "n") and letter:
            self.literal({"t": "true", "f": "false", "n": "null"}[letter])
        elif letter and (letter == "-" or letter in _DIGITS):
            self.number()
        else:
            self.refuse(context)

    def object(self) -> None:
        self.at += 1
        self.space()
        if self.peek() == "}":
            self.at += 1
            return
        while True:
            self.space()
            if self.peek() != '"':
                self.refuse("looking for beginning of object key string")
            self.string()
            self.space()
            if self.peek() != ":":
                self.refuse("after object key")
            self.at += 1
            self.value("looking for beginning of value")
            self.space()
            if self.peek() == "}":
                self.at += 1
                return
            if self.peek() != ",":
                self.refuse("after object key:value pair")
            self.at += 1

    def array(self) -> None:
        self.at += 1
        self.space()
        if self.peek() == "]":
            self.at += 1
            return
        while True:
            self.value("looking for beginning of value")
            self.space()
            if self.peek() == "]":
                self.at += 1
                return
            if self.peek() != ",":
                self.refuse("after array element")
            self.at += 1

    def string(self) -> None:
        self.at += 1
        while True:
            letter = self.peek()
            if letter == '"':
                self.at += 1
                return
            if letter == "\\":
                self.at += 1
                if self.peek() == "u":
                    for _ in range(4):
                        self.at += 1
                        if self.peek() not in "0123456789abcdefABCDEF" or not self.peek():
                            self.refuse("in \\u hexadecimal character escape")
                elif self.peek() not in '"\\/bfnrt' or not self.peek():
                    self.refuse("in string escape code")
            elif not letter or ord(letter) < 0x20:
                self.refuse("in string literal")
            self.at += 1

    def literal(self, word: str) -> None:
        for wanted in word:
            if self.peek() != wanted:
                self.refuse(f"in literal {word} (expecting '{wanted}')")
            self.at += 1

    def number(self) -> None:
        if self.peek() == "-":
            self.at += 1
            if not self.peek() or self.peek() not in _DIGITS:
                self.refuse("in numeric literal")
        if self.peek() == "0":
            self.at += 1
        else:
            self.digits()
        if self.peek() == ".":
            self.at += 1
            if not self.peek() or self.peek() not in _DIGITS:
                self.refuse("after decimal point in numeric literal")
            self.digits()
        if self.peek() and self.peek() in "eE":
            self.at += 1
            if self.peek() and self.peek() in "+-":
                self.at += 1
            if not self.peek() or self.peek() not in _DIGITS:
                self.refuse("in exponent of numeric literal")
            self.digits()

    def digits(self) -> None:
        while self.peek() and self.peek() in _DIGITS:
            self.at += 1
