"""The source text of an expression, and error messages with positions in it."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.cel.problems import CompileProblem

MAX_SNIPPET = 16384
FIRST_WIDE = 0x80


class Source:
    """The source text of an expression."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def message(self, at: int, problem: str) -> str:
        """Return the message for a problem: with line, column, the source line, and a mark below the position."""
        if not self.text:
            # An empty text has no position to mark.
            return f"ERROR: <input>:1:0: {problem}"
        line = self.text.count("\n", 0, at)
        start = self.text.rfind("\n", 0, at) + 1
        column = at - start
        shown = f"ERROR: <input>:{line + 1}:{column + 1}: {problem}"
        end = self.text.find("\n", start)
        snippet = self.text[start : end if end >= 0 else len(self.text)].replace("\t", " ")
        if len(snippet) > MAX_SNIPPET:
            return shown
        dots = "".join("\uff0e" if ord(char) >= FIRST_WIDE else "." for char in snippet[:column])
        mark = "\uff3e" if column < len(snippet) and ord(snippet[column]) >= FIRST_WIDE else "^"
        return f"{shown}\n | {snippet}\n | {dots}{mark}"

    def problem(self, at: int, problem: str) -> CompileProblem:
        """Return the exception for one problem."""
        return self.problems([(at, problem)])

    def unplaced(self, problem: str) -> CompileProblem:
        """Return the exception for a problem of the whole expression."""
        return CompileProblem(f"compilation failed: ERROR: <input>:-1:0: {problem}")

    def problems(self, found: Iterable[tuple[int, str]]) -> CompileProblem:
        """Return the exception for several problems (position and text), sorted by position."""
        shown = [self.message(at, problem) for at, problem in sorted(found, key=lambda entry: entry[0])]
        return CompileProblem("compilation failed: " + "\n".join(shown))
