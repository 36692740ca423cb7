"""The problems of a configuration: upstream's messages with line, column, path and a suggestion.

Upstream reports most problems as one text, with paths in several forms or none. This module splits it and finds each problem in the
configuration. kube-scheduler stops at the first stage that fails, and building stops at the first problem; `list_problems`
continues after correcting the problems found so far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

import msgspec
import yaml
from msgspec.structs import replace

from bayplan.framework.configuration.loading import Examination
from bayplan.framework.configuration.positions import Place, Step, TextPositions, steps_of
from bayplan.framework.configuration.suggestions import suggestion

_DURATIONS = frozenset(
    ("leaseDuration", "renewDeadline", "retryPeriod", "httpTimeout", "filterTimeout", "bindingTimeout")
)
_BASE64 = frozenset(("certData", "keyData", "caData"))

_STRICT = "strict decoding error: "
_ENTRY = re.compile(r"decoding \.(profiles\[\d+\]\.pluginConfig\[\d+\]): (.*)", re.DOTALL)
_ARGS_OF = re.compile(r"decoding args for plugin [^:]*: (.*)", re.DOTALL)
_NEXT_ENTRY = re.compile(r", (?=decoding \.)")
_NEXT_REMARK = re.compile(r", (?=unknown field \"|duplicate field \"|yaml: unmarshal)")
_FIELD = re.compile(r'(?:unknown|duplicate) field "(.*)"')
_TYPE = re.compile(r"cannot unmarshal (\S+)(?: (\S+))? into Go struct field [^. ]*\.(\S+) of type ")
_LINE = re.compile(r"line (\d+): ")
_QUOTED_DURATION = re.compile(r'time: .* "(.*)"')
_VALIDATION = re.compile(r"([A-Za-z][A-Za-z0-9.\[\]_/-]*): (?=[A-Z])")
_PROFILE = re.compile(r"initializing profiles: creating profile for scheduler name (.*?): (.*)", re.DOTALL)
_PLUGIN = re.compile(
    r'(?:(\w+)Plugin )?(?:plugin )?"([^"]*)" (?:does not exist|does not extend (\w+)Plugin|already registered)'
)
_ARGUMENTS = re.compile(r'initializing plugin "([^"]*)": (.*)', re.DOTALL)
_NEXT_ARGUMENT = re.compile(r", (?=(?:scoringStrategy|ignoredResource)[A-Za-z.\[\]0-9]*: )")

_NODE_KINDS = {"object": yaml.MappingNode, "array": yaml.SequenceNode}


class ConfigurationProblem(msgspec.Struct, frozen=True):
    """One problem.

    Attributes:
        message: upstream's, without the path if it begins with one.
        place: the position in the text.
        hint: the likely correct spelling of a misspelt name, or "".
    """

    message: str
    place: Place
    hint: str = ""

    def position(self, where: str) -> str:
        """Return file, line and column; the file alone if the line is not known."""
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
"""Maximum number of problems that `list_problems` looks for: each may take another examination of the whole text."""


def list_problems(
    text: str, found: Examination, examine: Callable[[str], Examination], plugins: Collection[str]
) -> list[ConfigurationProblem]:
    """Return all problems of a rejected configuration, in the order of the text.

    After each stage, misspelt names are corrected and other rejected fields removed in a copy, which is examined again. A problem
    at the position of an earlier one is a consequence of its correction and is left out.

    Args:
        text: the configuration.
        found: its examination.
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


def problems_of(found: Examination, text: str) -> list[ConfigurationProblem]:
    """Return the problems of the stage that rejected a configuration, in upstream's order; none if it is valid."""
    return _examined_problems(found, TextPositions(text), is_written=True) if found.stage is not None else []


def _examined_problems(found: Examination, positions: TextPositions, *, is_written: bool) -> list[ConfigurationProblem]:
    finder = _Finder(positions, is_written=is_written)
    if found.stage == "validation":
        return [finder.of_field(message) for message in found.messages]
    error = found.error or ""
    return [*(finder.of_decoding(error, ()) if found.stage == "decode" else finder.of_build(error))]


class _Finder:
    """Finds the positions of messages.

    Args:
        positions: the positions of the text.
        is_written: whether the examined text is the original; line numbers in messages about a corrected text are meaningless.
    """

    def __init__(self, positions: TextPositions, *, is_written: bool) -> None:
        self._positions = positions
        self._is_written = is_written

    def _on_line(self, line: str) -> Place:
        return self._positions.on_line(int(line) if self._is_written else 0)

    def _at(self, message: str, steps: tuple[Step, ...], *, of_key: bool = False) -> ConfigurationProblem:
        return ConfigurationProblem(message, self._positions.place(steps, of_key=of_key))

    def of_field(self, message: str, base: tuple[Step, ...] = ()) -> ConfigurationProblem:
        """Find the position of a message that begins with the path of its field."""
        match = _VALIDATION.match(message)
        if match is None:
            return self._at(message, base)
        return self._at(message[match.end() :], (*base, *steps_of(match[1])))

    # Decoding.

    def of_decoding(self, error: str, base: tuple[Step, ...]) -> Iterator[ConfigurationProblem]:
        """Split the error of a text, or of the arguments at `base`, that could not be decoded."""
        if error.startswith(_STRICT):
            # The errors of arguments are at the end, one part per entry.
            for part in _NEXT_ENTRY.split(error.removeprefix(_STRICT)):
                for remark in (part,) if _ENTRY.match(part) or _ARGS_OF.match(part) else _NEXT_REMARK.split(part):
                    yield from self.of_decoding(remark, base)
        elif entry := _ENTRY.match(error):
            yield from self.of_decoding(entry[2], (*steps_of(entry[1]), "args"))
        elif args := _ARGS_OF.match(error):
            yield from self.of_decoding(args[1], base)
        elif "already set in map" in error:
            for line in error.splitlines()[1:]:
                match = _LINE.search(line)
                if match is not None:
                    yield ConfigurationProblem(line[match.end() :], self._on_line(match[1]))
        else:
            yield self._of_remark(error, base)

    def _of_remark(self, error: str, base: tuple[Step, ...]) -> ConfigurationProblem:
        if field := _FIELD.match(error):
            inner = steps_of(field[1])
            return self._at(f"{error.partition(' field')[0]} field", (*base, *inner), of_key=True)
        if mismatch := _TYPE.search(error):
            return self._at(error, self._mismatched(mismatch, base))
        if match := _LINE.search(error):
            return ConfigurationProblem(error[match.end() :], self._on_line(match[1]))
        if error.startswith("no kind ") or "'apiVersion' is missing" in error:
            return self._at(error, (*base, "apiVersion"))
        if "'Kind' is missing" in error:
            return self._at("Object 'Kind' is missing", (*base, "kind"))
        steps = None
        if duration := _QUOTED_DURATION.match(error):
            steps = self._positions.first(
                lambda found, value: found[-1] in _DURATIONS and str(value.value or "") == duration[1]
            )
        elif "base64" in error:
            steps = self._positions.first(lambda found, value: found[-1] in _BASE64)
        return self._at(error, base if steps is None else steps)

    def _mismatched(self, mismatch: re.Match[str], base: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the path of the first field of that name below `base` that matches the message.

        Go omits the indexes of elements in such paths.
        """
        kind, literal, dotted = mismatch[1], mismatch[2], tuple(mismatch[3].split("."))

        def is_meant(steps: tuple[Step, ...], value: yaml.Node) -> bool:
            names = tuple(step for step in steps[len(base) :] if isinstance(step, str))
            return steps[: len(base)] == base and names == dotted and _is_kind(value, kind, literal)

        return self._positions.first(is_meant) or self._element(base, dotted, kind) or (*base, *dotted)

    def _element(self, base: tuple[Step, ...], dotted: tuple[str, ...], kind: str) -> tuple[Step, ...] | None:
        """Return the path of the first list of that name with an element that matches the message."""

        def holds(steps: tuple[Step, ...], value: yaml.Node) -> bool:
            names = tuple(step for step in steps if isinstance(step, str))
            return (
                names[-len(dotted) :] == dotted
                and isinstance(value, yaml.SequenceNode)
                and any(_is_kind(each, kind, None) for each in value.value)
            )

        return self._positions.first(holds)

    # Building.

    def of_build(self, error: str) -> Iterator[ConfigurationProblem]:
        """Split the error of profiles or extenders that could not be built."""
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
        """Return the path of the profile of a scheduler name, or of the only one if its name is not written."""
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
        """Return the path of the entry that enables a plugin: at the point, else at multiPoint, else anywhere."""
        places = [
            steps
            for steps, _, value in self._positions.fields()
            if steps[: len(profile)] == profile and steps[-1] == "name" and "enabled" in steps and value.value == name
        ]
        for wanted in (point, "multiPoint"):
            # If there are several, the last: the duplicate is rejected.
            for steps in reversed(places):
                if wanted in steps:
                    return steps
        return places[-1] if places else (*profile, "plugins")


def _is_kind(value: yaml.Node, kind: str, literal: str | None) -> bool:
    if kind in _NODE_KINDS:
        return isinstance(value, _NODE_KINDS[kind])
    if not isinstance(value, yaml.ScalarNode):
        return False
    tag = value.tag.rpartition(":")[2]
    if kind == "number":
        return tag in ("int", "float") and literal in (None, value.value)
    return tag == {"string": "str"}.get(kind, kind)
