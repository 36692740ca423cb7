"""Go's regular expressions: its syntax, matches and error messages, in time proportional to the length of the text.

RE2 does the work. Where it differs from Go's regexp package, this module corrects it: `\\C` is not an escape sequence,
errors have Go's words, and an empty match right after another match does not count.

The time is also proportional to the size of the program: in the worst case, RE2 takes 100 s for 3 MB of text and a
program of 1,800 instructions. A `WorkBudget` therefore limits the patterns of API users.

Source: https://pkg.go.dev/regexp/syntax, https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

try:
    import re2
except ModuleNotFoundError:
    re2 = None

USUAL_BYTES, MAX_BYTES = 2 << 20, 16 << 20
"""Memory of a compiled expression with its states: usually, and if its program alone needs more.

Go compiles programs of 128 MB, but RE2 takes 0.2 s to find out that one does not fit into 16 MB.
"""
MAX_USUAL, MAX_LARGE = 48, 2
"""Number of cached expressions of each size: 130 MB at most, if texts lead all of them through all their states.

Compiling an expression of usual size takes 14 us, finding it in the cache 0.1 us. A selector is evaluated for every
device, and a schema's patterns for every object.
"""
NS_PER_STEP = 20
"""Nanoseconds per instruction and byte, measured with the slowest expressions found."""
COMPILE_STEPS = 60
"""Steps for compiling one instruction, which takes 1.2 us."""
MAX_CLASS_BYTES = 250_000_000
"""Maximum number of `[:` in a pattern times its length.

RE2, like Go, searches the rest of the pattern for the end of each class name.
"""
BUDGET_STEPS = 25_000_000
"""Maximum number of steps for one request: half a second in the worst case, usually a few milliseconds."""


class RegexpError(ValueError):
    """A pattern that Go's regexp.Compile rejects, with Go's message; any pattern if google-re2 is not installed."""


class _UnclosedError(RegexpError):
    """A parenthesis is not closed."""


class WorkBudgetExceeded(Exception):
    """The expressions and texts of a request would exceed the limit in the worst case."""


class _TooLargeError(RegexpError):
    """The program of the expression exceeds the memory limit."""


class Regexp:
    """A compiled expression.

    Attributes:
        size: the number of instructions of its program.
    """

    __slots__ = ("_program", "size")

    def __init__(self, pattern: str, max_bytes: int) -> None:
        if re2 is None:
            raise RegexpError(_NO_RE2)
        if pattern.count("[:") * len(pattern) > MAX_CLASS_BYTES:
            raise _TooLargeError(_TOO_LARGE.format(pattern))
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = max_bytes
        try:
            self._program = re2.compile(_encoded(pattern), options)
        except re2.error as problem:
            raise _error(pattern, problem) from None
        finally:
            # The Python package of RE2 has its own cache of 128 programs.
            re2.purge()
        self.size: int = self._program.programsize

    def matches(self, text: str) -> bool:
        """Return whether any part of a text matches."""
        return self._program.search(_encoded(text)) is not None

    def find(self, text: str) -> str:
        """Return the leftmost match, or `""`."""
        found = self._program.search(_encoded(text))
        return "" if found is None else str(found.group(), "utf-8")

    def find_each(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield the matches from left to right, each with the number of bytes after it, which the next search may read."""
        end = -1
        data = _encoded(text)
        for match in self._program.finditer(data):
            # Go ignores empty matches right after another match, and RE2 also finds some inside a character.
            inside = match.start() < len(data) and data[match.start()] & 0xC0 == 0x80
            if match.start() == match.end() and (match.start() == end or inside):
                continue
            end = match.end()
            yield str(match.group(), "utf-8"), len(data) - end


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def compile_regexp(pattern: str) -> Regexp:
    """Compile an expression.

    Raises:
        RegexpError: Go rejects the expression, or its program needs more than `MAX_BYTES`.
    """
    try:
        return _usual(pattern)
    except _TooLargeError:
        return _large(pattern)


@lru_cache(maxsize=MAX_USUAL)
def _usual(pattern: str) -> Regexp:
    at, problem = _first_difference(pattern)
    if problem:
        # If RE2 finds another problem further left, report that one.
        try:
            Regexp(pattern[:at], USUAL_BYTES)
        except (_UnclosedError, _TooLargeError):
            pass
        except RegexpError:
            Regexp(pattern, USUAL_BYTES)
        raise RegexpError(f"error parsing regexp: {problem}")
    return Regexp(pattern, USUAL_BYTES)


@lru_cache(maxsize=MAX_LARGE)
def _large(pattern: str) -> Regexp:
    return Regexp(pattern, MAX_BYTES)


class CacheCounts(NamedTuple):
    """Numbers of expressions: found in the cache, and compiled."""

    found: int
    compiled: int


def cache_counts() -> CacheCounts:
    """Return the counts of this process."""
    infos = (_usual.cache_info(), _large.cache_info())
    return CacheCounts(sum(each.hits for each in infos), sum(each.misses for each in infos))


class WorkBudget:
    """The work of one request on regular expressions, limited to a number of steps in the worst case.

    Args:
        steps: the maximum number of steps, of `NS_PER_STEP` each.
    """

    __slots__ = ("_compiled", "_steps")

    def __init__(self, steps: int = BUDGET_STEPS) -> None:
        self._steps = steps
        self._compiled: dict[str, int] = {}

    def spend(self, steps: int) -> None:
        """Deduct steps from the budget.

        Raises:
            WorkBudgetExceeded: the budget is exhausted.
        """
        self._steps -= steps
        if self._steps < 0:
            raise WorkBudgetExceeded

    def compile(self, pattern: str) -> Regexp:
        """Compile an expression. Compiling the same one again takes no further steps.

        Raises:
            RegexpError: as by `compile_regexp`.
            WorkBudgetExceeded: no steps are left.
        """
        if self._steps < 0:
            raise WorkBudgetExceeded
        try:
            compiled = compile_regexp(pattern)
        except _TooLargeError:
            self._steps = -1
            raise
        if pattern not in self._compiled:
            self._compiled[pattern] = compiled.size
            self.spend(len(pattern) + compiled.size * COMPILE_STEPS)
        return compiled

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether any part of a text matches.

        Raises:
            RegexpError: as by `compile_regexp`.
            WorkBudgetExceeded: matching could take more steps than are left.
        """
        compiled = self.compile(pattern)
        self.spend((4 * len(text) if not text.isascii() else len(text)) * compiled.size)
        return compiled.matches(text)


_TOKEN = re.compile(
    r"""\\Q(?:.*?\\E|.*)
      | \\(?P<escape>.)
      | \[\^?\]?(?:\\.|\[:\^?\w*:\]|[^\]\\])*\]
      | (?P<unclosed>\[)
      | \(\?P?<(?P<name>[^>]*)(?P<end>>?)
      | .""",
    re.DOTALL | re.VERBOSE,
)
"""Matches quoted text, an escape, a class, the start of an unclosed class, a group's name, or any other character."""


def _first_difference(pattern: str) -> tuple[int, str]:
    """Find the first construct that RE2 accepts but Go rejects; return its position and Go's error, or 0 and `""`."""
    for token in _TOKEN.finditer(pattern):
        if token["unclosed"] or token["end"] == "":
            # RE2 rejects this, too. Searching for its end again at every later position would take quadratic time.
            break
        if token["escape"] == "C":
            return token.start(), r"invalid escape sequence: `\C`"
        name = token["name"]
        if name and not name.isascii():
            return token.start(), f"invalid named capture: `{token[0]}`"
    return 0, ""


_NO_RE2 = (
    "regular expressions need google-re2: try pip install google-re2, or Python 3.11 to 3.14, for which it has wheels"
)
_TOO_LARGE = "error parsing regexp: expression too large: `{}`"
_CODES = {
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "missing ]": "missing closing ]",
    "invalid character class range": "invalid character class range",
    "invalid character class": "invalid character class",
    "invalid escape sequence": "invalid escape sequence",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid UTF-8": "invalid UTF-8",
}


def _error(pattern: str, problem: Exception) -> RegexpError:
    """Convert an error of RE2 to Go's."""
    (message,) = problem.args
    message = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    code, _, what = message.partition(": ")
    text = _CODES.get(code)
    if text is None:
        return _TooLargeError(_TOO_LARGE.format(pattern))
    if code == "missing )":
        return _UnclosedError(f"error parsing regexp: {text}: `{pattern}`")
    if what in ("(?<=", "(?<!"):
        # Go takes this for a named group.
        rest = pattern[pattern.index(what) :]
        text, what = "invalid named capture", rest[: rest.find(">") + 1 or None]
    twice = _TWO_COUNTS.fullmatch(what) if code == "bad repetition operator" else None
    if twice is not None and not _is_count(int(twice["least"]), int(twice["most"] or twice["least"])):
        text, what = "invalid repeat count", twice["second"]
    if text == "invalid repeat count":
        what = what.removesuffix("?")
    return RegexpError(f"error parsing regexp: {text}: `{what}`")


_TWO_COUNTS = re.compile(r"(?:\{[0-9,]+\}|[*+?])\??(?P<second>\{(?P<least>[0-9]+),?(?P<most>[0-9]*)\})\??")
_MAX_REPEATS = 1000


def _is_count(least: int, most: int) -> bool:
    return least <= most <= _MAX_REPEATS
