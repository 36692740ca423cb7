"""Feature gates: which gates are enabled, and kube-scheduler's checks of the gates that are set.

Messages are upstream's (component-base, featuregate). Where upstream lists names in the random order of a Go map, they
are in alphabetical order here.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from bayplan.base.errors import ConfigurationError, InvariantError
from bayplan.base.go_text.json import json_text
from bayplan.base.go_text.quoting import quote
from bayplan.base.near_names import near_name
from bayplan.framework.feature_gate_table import DEPENDENCIES, GATES
from bayplan.objects.selectors import join_errors

_GROUP_STAGES: Final[Mapping[str, str]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_COMPONENT: Final = "kube"
_UNRECOGNIZED: Final = "unrecognized feature gate: "


class FeatureGates:
    """The feature gates of a scheduler: the defaults of the release, changed by the gates that were set."""

    __slots__ = ("_enabled", "_given")

    def __init__(self) -> None:
        self._given: dict[str, bool] = {}
        self._enabled = {name: default for name, (_, default, _) in GATES.items()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, bool], *, where: str = "") -> "FeatureGates":
        """Return the release's defaults with these gates set; see `with_values`."""
        return cls().with_values(values, where=where)

    @classmethod
    def from_text(cls, text: str, *, where: str = "") -> "FeatureGates":
        """Return the release's defaults with the gates of a ``--feature-gates`` value set: ``A=true,kube:B=false``.

        Raises:
            ConfigurationError: the text can't be parsed, or a gate can't be set to this value.
        """
        return cls().with_values(parse_feature_gates(text, where=where), where=where)

    def with_values(self, values: Mapping[str, bool], *, where: str = "") -> "FeatureGates":
        """Return the gates with more gates set; gates that were set before stay set.

        Raises:
            ConfigurationError: a gate is unknown or locked, or enabled without a gate that it depends on. The error's
                ``what`` contains all messages, joined as upstream does.
        """
        after = FeatureGates()
        after._given = {**self._given, **values}
        errors = after._apply()
        if errors:
            raise ConfigurationError(join_errors(errors), where=where, hint=_near_gate(errors[-1]))
        return after

    def _apply(self) -> list[str]:
        errors: list[str] = []
        for name, value in self.given().items():
            if name not in GATES:
                # Upstream stops at the first unknown gate.
                return [*errors, _UNRECOGNIZED + name]
            _, default, locked = GATES[name]
            if locked and value != default:
                shown, fixed = json_text(value), json_text(default)
                errors.append(f"cannot set feature gate {name} to {shown}, feature is locked to {fixed}")
            self._enabled[name] = value
        if errors:
            return errors
        # AllAlpha and AllBeta set the gates of a stage that are not set by name, even locked ones.
        for group, stage in _GROUP_STAGES.items():
            for name, (gate_stage, _, _) in GATES.items() if group in self._given else ():
                if gate_stage == stage and name not in _GROUP_STAGES and name not in self._given:
                    self._enabled[name] = self._given[group]
        return list(self._dependency_errors())

    def _dependency_errors(self) -> Iterator[str]:
        for name, needed in sorted(DEPENDENCIES.items()):
            missing = [other for other in needed if self.enabled(name) and not self.enabled(other)]
            if missing:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"

    def enabled(self, name: str) -> bool:
        """Return whether a gate is enabled.

        Raises:
            InvariantError: the release has no gate with this name.
        """
        if name not in self._enabled:
            raise InvariantError(f"no feature gate is called {name}")
        return self._enabled[name]

    def given(self) -> dict[str, bool]:
        """Return the gates that were set by name, including AllAlpha and AllBeta, in alphabetical order."""
        return dict(sorted(self._given.items()))

    def all(self) -> dict[str, bool]:
        """Return all gates with their values, in alphabetical order."""
        return dict(self._enabled)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._enabled == other._enabled

    def __hash__(self) -> int:
        return hash(tuple(self._enabled.items()))

    def __repr__(self) -> str:
        return f"FeatureGates({self.text})"

    @property
    def text(self) -> str:
        """Return the gates that were set, in the form that `from_text` parses."""
        return ",".join(f"{name}={json_text(value)}" for name, value in self.given().items())


def parse_feature_gates(text: str, *, where: str = "") -> dict[str, bool]:
    """Parse ``A=true,B=false``; either all names have the prefix ``kube:`` or none.

    Raises:
        ConfigurationError: the text is invalid; the message is upstream's.
    """
    values: dict[str, bool] = {}
    components: set[str] = set()
    for part in text.split(","):
        if not part:
            continue
        component, colon, setting = part.partition(":")
        if not colon:
            component, setting = "", part
        components.add(component.strip())
        if component.strip() not in ("", _COMPONENT):
            raise ConfigurationError(f"component not registered: {component.strip()}", where=where)
        name, value = _parse_setting(setting.strip(), where)
        values[name] = value
    if len(components) > 1:
        raise ConfigurationError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use", where=where
        )
    return values


def _parse_setting(setting: str, where: str) -> tuple[str, bool]:
    name, equals, value = setting.partition("=")
    name, value = name.strip(), value.strip()
    if not equals:
        raise ConfigurationError(f"missing bool value for {name}", where=where)
    if value not in _TRUE | _FALSE:
        reason = f"strconv.ParseBool: parsing {quote(value)}: invalid syntax"
        hint = f"'{name}=true' or '{name}=false'"
        raise ConfigurationError(f"invalid value of {name}={value}, err: {reason}", where=where, hint=hint)
    return name, value in _TRUE


def _near_gate(error: str) -> str:
    """Return the likely correct spelling of an unrecognized gate, quoted, or ""."""
    name = error.removeprefix(_UNRECOGNIZED)
    close = near_name(name, GATES) if name != error else ""
    return f"'{close}'" if close else ""
