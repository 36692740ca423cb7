"""The problems of a configuration: upstream's messages with line, column, path and a suggestion.

Locates each problem of an `Examination` in the text. (A problem of building has no path, only the names of profile and
plugin.) kube-scheduler stops at the first stage that fails, and building stops at the first problem; `list_problems`
corrects the problems found so far and continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import ConfigurationError
from bayplan.base.near_names import near_name
from bayplan.framework.configuration.convert import convert_text
from bayplan.framework.configuration.decode import Remark
from bayplan.framework.configuration.document import KubeSchedulerConfiguration
from bayplan.framework.configuration.field_errors import Step, steps_of
from bayplan.framework.configuration.loading import Examination
from bayplan.framework.configuration.plugin_arguments import ARGUMENT_TYPES
from bayplan.framework.configuration.positions import Place, TextPositions
from bayplan.framework.configuration.schema import Arguments, GoType, Nested, Pointer, Slice, StructField, fields_of

_LINE = re.compile(r"line (\d+): ")
_VALIDATION = re.compile(r"([A-Za-z][A-Za-z0-9.\[\]_/-]*): (?=[A-Z])")
_PROFILE = re.compile(r"initializing profiles: creating profile for scheduler name (.*?): (.*)", re.DOTALL)
_PLUGIN = re.compile(
    r'(?:(\w+)Plugin )?(?:plugin )?"([^"]*)" (?:does not exist|does not extend (\w+)Plugin|already registered)'
)
_ARGUMENTS = re.compile(r'initializing plugin "([^"]*)": (.*)', re.DOTALL)
_NEXT_ARGUMENT = re.compile(r", (?=(?:scoringStrategy|ignoredResource)[A-Za-z.\[\]0-9]*: )")


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


MAX_PROBLEMS = 50
"""Maximum number of problems that `list_problems` reports: each may require another examination of the whole text."""


def list_problems(
    text: str, found: Examination, examine: Callable[[str], Examination], plugins: Collection[str]
) -> list[ConfigurationProblem]:
    """Return all problems of a rejected configuration, in the order of the text.

    After each examination, misspelt names are corrected and other rejected fields are removed in a copy, which is
    examined again. A problem at the position of an earlier one results from its correction, and is skipped.

    Args:
        text: the configuration.
        found: the result of its examination.
        examine: examines a text, with the same feature gates and plugins.
        plugins: names of all plugins, for suggestions.
    """
    positions = TextPositions(text)
    problems: list[ConfigurationProblem] = []
    places: set[tuple[int, int]] = set()
    while found.stage is not None and len(problems) < MAX_PROBLEMS:
        corrected = False
        for problem in _examined_problems(found, positions, is_written=not problems):
            line, column, path = problem.place
            if (line, column) in places:
                continue
            hint = suggestion(problem.message, path, positions.value_at, plugins)
            problems.append(replace(problem, hint=hint))
            if path in ("$", "$.apiVersion", "$.kind") or not line:
                continue
            places.add((line, column))
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
    if not (found.error or "").startswith("no kind "):
        return False
    try:
        convert_text(text)
    except ConfigurationError:
        return False
    return True


def problems_of(found: Examination, text: str) -> list[ConfigurationProblem]:
    """Return the problems of the stage that rejected a configuration, in upstream's order; empty if it is valid."""
    return _examined_problems(found, TextPositions(text), is_written=True) if found.stage is not None else []


def _examined_problems(found: Examination, positions: TextPositions, *, is_written: bool) -> list[ConfigurationProblem]:
    finder = _Finder(positions)
    if found.stage == "validation":
        return [finder.of_field(message) for message in found.messages]
    if found.stage == "build":
        return [*finder.of_build(found.error or "")]
    # The line numbers in messages about a corrected text don't apply to the original text.
    return [finder.of_decoding(remark, is_written=is_written) for remark in found.remarks]


class _Finder:
    """Returns problems with the positions of the fields that messages are about."""

    def __init__(self, positions: TextPositions) -> None:
        self._positions = positions

    def _at(self, message: str, steps: tuple[Step, ...], *, of_key: bool = False) -> ConfigurationProblem:
        return ConfigurationProblem(message, self._positions.place(steps, of_key=of_key))

    def of_field(self, message: str, base: tuple[Step, ...] = ()) -> ConfigurationProblem:
        """Return the problem of a message that begins with the path of its field, relative to `base`."""
        match = _VALIDATION.match(message)
        if match is None:
            return self._at(message, base)
        return self._at(message[match.end() :], (*base, *steps_of(match[1])))

    def of_decoding(self, remark: Remark, *, is_written: bool) -> ConfigurationProblem:
        """Return the problem of a decoding remark, which has the path of its field or names a line."""
        match = None if remark.steps else _LINE.search(remark.text)
        if match is None:
            return self._at(remark.message or remark.text, remark.steps, of_key=remark.of_key)
        place = self._positions.on_line(int(match[1]) if is_written else 0)
        return ConfigurationProblem(remark.text[match.end() :], place)

    def of_build(self, error: str) -> Iterator[ConfigurationProblem]:
        """Split the error of profiles or extenders that could not be built into problems."""
        match = _PROFILE.match(error)
        if match is None:
            yield self._at(error, ("extenders",) if "extender" in error else ("profiles",))
            return
        profile, reason = self._profile(match[1]), match[2]
        if arguments := _ARGUMENTS.match(reason):
            entry = self._named(profile, "pluginConfig", arguments[1])
            listed = arguments[2]
            if listed.startswith("[") and listed.endswith("]"):
                listed = listed[1:-1]
            for each in _NEXT_ARGUMENT.split(listed):
                yield self.of_field(each, (*entry, "args"))
        elif plugin := _PLUGIN.search(reason):
            point = plugin[1] or plugin[3] or ""
            yield self._at(reason, self._enabled(profile, point[:1].lower() + point[1:], plugin[2]))
        else:
            yield self._at(reason, profile)

    def _profile(self, name: str) -> tuple[Step, ...]:
        """Return the path of the profile with a scheduler name, else of the first profile."""
        named = self._positions.first(
            lambda steps, value: len(steps) == 3 and steps[::2] == ("profiles", "schedulerName") and value.value == name
        )
        return named[:2] if named is not None else ("profiles", 0)

    def _named(self, profile: tuple[Step, ...], field: str, name: str) -> tuple[Step, ...]:
        found = self._positions.first(
            lambda steps, value: steps[:-2] == (*profile, field) and steps[-1] == "name" and value.value == name
        )
        return (*profile, field) if found is None else found[:-1]

    def _enabled(self, profile: tuple[Step, ...], point: str, name: str) -> tuple[Step, ...]:
        """Return the path of the entry that enables a plugin: at the extension point, at multiPoint, or anywhere."""
        places = [
            steps
            for steps, _, value in self._positions.fields()
            if steps[: len(profile)] == profile and steps[-1] == "name" and "enabled" in steps and value.value == name
        ]
        for wanted in (point, "multiPoint"):
            # Of duplicate entries, upstream rejects the last.
            for steps in reversed(places):
                if wanted in steps:
                    return steps
        return places[-1] if places else (*profile, "plugins")


_KIND = "KubeSchedulerConfiguration"
_MISSING_PLUGIN = re.compile(r'"([^"]*)" does not exist')
_UNSUPPORTED = re.compile(r'Unsupported value: "([^"]*)": supported values: (.*)', re.DOTALL)
_UNKNOWN_KIND = re.compile(r'no kind "([^"]*)" is registered')


def suggestion(message: str, path: str, value_at: Callable[[Sequence[Step]], str], plugins: Collection[str]) -> str:
    """Return the likely correct spelling of the misspelt name that a message is about.

    Returns "" if the message is not about a name, or no name is similar.

    Args:
        message: upstream's message.
        path: the path of the field that the message is about.
        value_at: the function that returns the scalar at a path of the text.
        plugins: the names of all plugins.
    """
    steps = steps_of(path.removeprefix("$"))
    if message == "unknown field" and steps:
        return near_name(str(steps[-1]), _fields_at(steps[:-1], value_at))
    if match := _MISSING_PLUGIN.search(message):
        return near_name(match[1], plugins)
    if match := _UNSUPPORTED.match(message):
        return near_name(match[1], re.findall(r'"([^"]*)"', match[2]))
    if match := _UNKNOWN_KIND.match(message):
        return near_name(match[1], (_KIND,)) if match[1] != _KIND else ""
    return ""


def _fields_at(steps: Sequence[Step], value_at: Callable[[Sequence[Step]], str]) -> list[str]:
    """Return the names of the fields that the object at a path may have."""
    here: GoType = Nested(KubeSchedulerConfiguration)
    for number, step in enumerate(steps):
        here = _core(here)
        if isinstance(step, int):
            continue
        known = {field.json.lower(): field.go_type for field in _fields(here)}
        found = known.get(step.lower())
        if isinstance(found, Arguments):
            arguments = ARGUMENT_TYPES.get(f"{value_at((*steps[:number], 'name'))}Args")
            found = Nested(arguments) if arguments is not None else None
        if found is None:
            return []
        here = found
    return [field.json for field in _fields(_core(here))]


def _core(go_type: GoType) -> GoType:
    while isinstance(go_type, Pointer | Slice):
        go_type = go_type.element
    return go_type


def _fields(go_type: GoType) -> Sequence[StructField]:
    return fields_of(go_type.struct) if isinstance(go_type, Nested) else ()
