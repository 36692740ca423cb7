"""The problems of a configuration: upstream's messages with line, column, path and a suggestion.

kube-scheduler stops at the first stage that fails, and building stops at the first problem. `list_problems` locates each
problem, corrects it in a copy, and continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import ConfigurationError
from bayplan.base.near_names import near_name
from bayplan.framework.configuration.convert import is_convertible
from bayplan.framework.configuration.document import KIND, KubeSchedulerConfiguration
from bayplan.framework.configuration.field_errors import Step, steps_of
from bayplan.framework.configuration.loading import Examination
from bayplan.framework.configuration.plugin_arguments import argument_type_of
from bayplan.framework.configuration.positions import Place, TextPositions
from bayplan.framework.configuration.schema import (
    ARGUMENTS,
    STRING,
    GoType,
    Nested,
    Pointer,
    Slice,
    StructField,
    fields_of,
)

MAX_PROBLEMS = 50
"""Maximum number of problems that `list_problems` reports: each may require another examination of the whole text."""

_LINE = re.compile(r"line (\d+): ")
_VALIDATION = re.compile(r"([A-Za-z][A-Za-z0-9.\[\]_/-]*): (?=[A-Z])")
_MISSING_PLUGIN = re.compile(r'"([^"]*)" does not exist')
_UNSUPPORTED = re.compile(r'Unsupported value: "([^"]*)": supported values: (.*)', re.DOTALL)
_UNKNOWN_KIND = re.compile(rf'no kind "(?!{KIND}")([^"]*)" is registered')


class ConfigurationProblem(msgspec.Struct, frozen=True):
    """One problem of a configuration.

    Attributes:
        message: upstream's message, without the path at its beginning, if any.
        place: the position in the text.
        hint: the likely correct spelling of a misspelt name, or "".
    """

    message: str
    place: Place
    hint: str = ""

    def position(self, where: str) -> str:
        """Return ``file:line:column``, or the file alone if the line is unknown."""
        return f"{where}:{self.place.line}:{self.place.column}" if self.place.line else where

    @property
    def quoted_hint(self) -> str:
        """Return the suggestion in quotes, or ""."""
        return f"'{self.hint}'" if self.hint else ""

    def line(self, where: str) -> str:
        """Return file, line, column, path, message and suggestion as one line."""
        text = f"{self.position(where)} {self.place.path}: {self.message}"
        return f"{text}; try {self.quoted_hint}" if self.hint else text


def list_problems(
    text: str, found: Examination, examine: Callable[[str], Examination], plugins: Collection[str]
) -> list[ConfigurationProblem]:
    """Return all problems of a rejected configuration, in the order of the text.

    After each examination, misspelt names are corrected and other rejected fields are removed in a copy, which is
    examined again. A problem with the position or path of an earlier one results from its correction, and is skipped.

    Args:
        text: the configuration.
        found: the result of its examination.
        examine: examines a text, with the same feature gates and plugins.
        plugins: names of all plugins, for suggestions.
    """
    positions = TextPositions(text)
    problems: list[ConfigurationProblem] = []
    seen: set[tuple[int, int] | str] = set()
    while found.stage is not None and len(problems) < MAX_PROBLEMS:
        corrected = False
        # The line numbers in messages about a corrected text don't apply to the original text.
        located = [*_located(found, positions, has_lines=not problems)]
        for problem in located:
            line, column, path = problem.place
            marks: set[tuple[int, int] | str] = {(line, column), path}
            if not seen.isdisjoint(marks):
                seen |= marks
                continue
            hint = _suggestion(problem.message, steps_of(path.removeprefix("$")), positions, plugins)
            problems.append(replace(problem, hint=hint))
            if path in ("$", "$.apiVersion", "$.kind") or not line:
                continue
            seen |= marks
            is_name = bool(hint) and positions.rename(line, column, hint)
            corrected = is_name or positions.remove(line, column) or corrected
        if not corrected:
            break
        found = examine(positions.text())
    return sorted(problems, key=lambda problem: problem.place[:2])


def invalid_configuration(
    text: str, where: str, found: Examination, examine: Callable[[str], Examination], plugins: Collection[str]
) -> ConfigurationError:
    """Return the error that lists the problems of a rejected file.

    `where` is the name of the file; the other arguments are those of `list_problems`.
    """
    problems = list_problems(text, found, examine, plugins)
    hint = "bayplan config convert" if is_older(text, found) else ""
    if len(problems) == 1:
        problem = problems[0]
        what = f"{problem.place.path}: {problem.message}"
        return ConfigurationError(what, where=problem.position(where), hint=hint or problem.quoted_hint)
    lines = "".join(f"\n  {problem.line(where)}" for problem in problems)
    return ConfigurationError(f"has {len(problems)} problems:{lines}", where=where, hint=hint)


def is_older(text: str, found: Examination) -> bool:
    """Return whether a configuration was rejected because of its version, and can be converted from that version."""
    return (found.error or "").startswith("no kind ") and is_convertible(text)


def _located(found: Examination, positions: TextPositions, *, has_lines: bool) -> Iterator[ConfigurationProblem]:
    """Yield the problems of the stage that rejected a configuration, in upstream's order.

    `has_lines` tells whether line numbers in messages are those of the text.
    """
    if found.stage == "validation":
        for message in found.messages:
            yield _of_field(positions, message)
    for remark in found.remarks:
        if found.stage == "build":
            yield _of_field(positions, remark.text, _steps_in_text(positions, remark.steps))
        elif not remark.steps and (match := _LINE.search(remark.text)):
            place = positions.on_line(int(match[1]) if has_lines else 0)
            yield ConfigurationProblem(remark.text[match.end() :], place)
        else:
            place = positions.place(remark.steps, of_key=remark.of_key)
            yield ConfigurationProblem(remark.message or remark.text, place)


def _of_field(positions: TextPositions, message: str, base: tuple[Step, ...] = ()) -> ConfigurationProblem:
    """Return the problem of a message that may begin with the path of its field, relative to `base`."""
    match = _VALIDATION.match(message)
    if match is None:
        return ConfigurationProblem(message, positions.place(base))
    return ConfigurationProblem(message[match.end() :], positions.place((*base, *steps_of(match[1]))))


def _steps_in_text(positions: TextPositions, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the path in the text of a remark of building; `BuildError` describes those of enabled plugins.

    The text may enable such a plugin at the extension point, at multiPoint, or, if neither, anywhere in the profile.
    """
    if steps[2:3] != ("plugins",):
        return steps
    point, plugin = steps[3], steps[5]
    places = [
        place
        for place, value in positions.scalars("name")
        if place[:2] == steps[:2] and "enabled" in place and value == plugin
    ]
    # Of duplicate entries, upstream rejects the last.
    for wanted in (point, "multiPoint", "enabled"):
        for place in reversed(places):
            if wanted in place:
                return place
    return steps[:3]


def _suggestion(message: str, steps: tuple[Step, ...], positions: TextPositions, plugins: Collection[str]) -> str:
    """Return the likely correct spelling of the misspelt name that upstream's message is about, or ""."""
    if message == "unknown field" and steps:
        return near_name(str(steps[-1]), _fields_at(steps[:-1], positions))
    if match := _MISSING_PLUGIN.search(message):
        return near_name(match[1], plugins)
    if match := _UNSUPPORTED.match(message):
        return near_name(match[1], re.findall(r'"([^"]*)"', match[2]))
    if match := _UNKNOWN_KIND.match(message):
        return near_name(match[1], (KIND,))
    return ""


def _fields_at(steps: tuple[Step, ...], positions: TextPositions) -> list[str]:
    """Return the names of the fields that the object at a path may have."""
    here: GoType = Nested(KubeSchedulerConfiguration)
    for number, step in enumerate(steps):
        if isinstance(step, int):
            continue
        here = {field.json.lower(): field.go_type for field in _fields(here)}.get(step.lower(), STRING)
        if here == ARGUMENTS:
            name = (*steps[:number], "name")
            plugin = next((value for path, value in positions.scalars("name") if path == name), "")
            arguments = argument_type_of(plugin)
            here = STRING if arguments is None else Nested(arguments)
    return [field.json for field in _fields(here)]


def _fields(go_type: GoType) -> Sequence[StructField]:
    while isinstance(go_type, Pointer | Slice):
        go_type = go_type.element
    return fields_of(go_type.struct) if isinstance(go_type, Nested) else ()
