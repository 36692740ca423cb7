"""Changes of a scheduler's configuration to try: change the weight of a plugin, or disable a plugin."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.near_names import near_name
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.framework.configuration.profiles import PluginWeight, ProfileConfiguration

WEIGHT, DISABLE = "weight", "disable"
SCORE = "score"
_REQUIRED = ("queue_sort", "bind")
"""Extension points that need a plugin; ``disable`` does not change them."""


def is_profile_change(text: str) -> bool:
    """Return whether a text is ``weight=PLUGIN:N`` or ``disable=PLUGIN``."""
    kind, equals, rest = text.partition("=")
    return bool(equals and rest) and kind in (WEIGHT, DISABLE)


def changed_configuration(configuration: SchedulerConfiguration, text: str) -> SchedulerConfiguration:
    """Apply ``weight=PLUGIN:N`` or ``disable=PLUGIN`` to all profiles of a configuration.

    Raises:
        InputError: there is no such plugin, or the weight is invalid.
    """
    kind, _, rest = text.partition("=")
    profiles = configuration.profiles
    if kind == WEIGHT:
        name, colon, number = rest.rpartition(":")
        if not colon or not number.isdecimal() or not 1 <= whole_number(number) <= 2**31 - 1:
            raise InputError(
                WEIGHT, got=repr(rest), wanted="PLUGIN:WEIGHT with a weight above 0", hint="disable=PLUGIN for weight 0"
            )
        _check_name(configuration, name, SCORE)
        profiles = tuple(_weighted(profile, name, int(number)) for profile in profiles)
    else:
        _check_name(configuration, rest, "")
        profiles = tuple(_disabled(profile, rest) for profile in profiles)
    return replace(configuration, profiles=profiles)


def _weighted(profile: ProfileConfiguration, name: str, weight: int) -> ProfileConfiguration:
    scorers = tuple(
        PluginWeight(entry.name, weight) if entry.name == name else entry for entry in profile.plugins[SCORE]
    )
    return replace(profile, plugins={**profile.plugins, SCORE: scorers})


def _disabled(profile: ProfileConfiguration, name: str) -> ProfileConfiguration:
    kept = {
        point: tuple(entry for entry in entries if entry.name != name or point in _REQUIRED)
        for point, entries in profile.plugins.items()
    }
    return replace(profile, plugins=kept)


def _check_name(configuration: SchedulerConfiguration, name: str, point: str) -> None:
    names = {
        entry.name: None
        for profile in configuration.profiles
        for each, entries in profile.plugins.items()
        for entry in entries
        if point in ("", each)
    }
    if name not in names:
        close = near_name(name, list(names))
        what = "score plugin" if point == SCORE else "plugin"
        raise InputError(what, got=repr(name), wanted=f"one of {', '.join(names)}", hint=f"'{close}'" if close else "")
