"""Load a scheduler configuration from a text, from parsed data, or the default one.

`load_configuration` raises on errors, `examine_configuration` returns the result of every step as a value. The steps
are upstream's: decode (with defaults), validate, build.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import ConfigurationError
from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.document import API_VERSION, KIND, Extender, KubeSchedulerConfiguration
from bayplan.framework.configuration.extenders import CheckTls, apply_ignored_resources, build_extenders, with_timeout
from bayplan.framework.configuration.extension_points import (
    IN_TREE_EXTENSION_POINTS,
    ExtensionPointsOf,
    in_tree_extension_points,
)
from bayplan.framework.configuration.field_errors import Remark
from bayplan.framework.configuration.profiles import BuildError, ProfileConfiguration, build_profiles
from bayplan.framework.configuration.scheme import decode_document
from bayplan.framework.configuration.struct_codec import DecodeError, encode_struct
from bayplan.framework.configuration.validation import validate_document
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.objects.selectors import join_errors

Source: TypeAlias = str | bytes | Mapping[str, object]
"""A configuration as YAML or JSON, or as plain data: dicts, lists and scalars."""

Stage = Literal["decode", "validation", "build"]


class SchedulerConfiguration(msgspec.Struct, frozen=True):
    """A valid configuration.

    Attributes:
        declared: the file with its defaults filled in; the arguments of NodeResourcesFit already contain the resources
            that extenders declare as ignored.
        profiles: the profiles in the order of the file, with unique names.
        extenders: the extenders in calling order.

    Class attributes:
        max_score: the largest normalised score of a plugin.
    """

    max_score: ClassVar[int] = 100
    declared: KubeSchedulerConfiguration
    profiles: tuple[ProfileConfiguration, ...]
    extenders: tuple[Extender, ...]

    @property
    def percentage_of_nodes_to_score(self) -> int:
        """Return the percentage for profiles without one of their own; 0 means adaptive."""
        return self.declared.percentage_of_nodes_to_score or 0

    def profile(self, scheduler_name: str) -> ProfileConfiguration | None:
        """Return the profile with a scheduler name; None if there is none."""
        return next((profile for profile in self.profiles if profile.scheduler_name == scheduler_name), None)

    def effective_document(self) -> dict[str, JsonValue]:
        """Return the configuration as ``kube-scheduler --write-config-to`` writes it.

        Arguments of disabled plugins are omitted, the others are sorted by plugin, and extenders without a timeout have
        the default one.
        """
        profiles = []
        for declared, built in zip(self.declared.profiles, self.profiles, strict=True):
            entries = tuple(entry for entry in declared.plugin_config if entry.name in built.plugin_arguments)
            profiles.append(
                replace(declared, plugin_config=tuple(sorted(entries, key=lambda entry: entry.name.encode())))
            )
        extenders = tuple(with_timeout(extender) for extender in self.declared.extenders)
        return declared_document(replace(self.declared, profiles=tuple(profiles), extenders=extenders))

    def with_plugins(self, plugins: Iterable[tuple[type[Plugin[Any]], int]]) -> "SchedulerConfiguration":
        """Return the configuration with custom plugins, given with their weights, enabled in every profile.

        See `ProfileConfiguration.with_plugin`.
        """
        profiles = self.profiles
        for plugin, weight in plugins:
            profiles = tuple(
                profile.with_plugin(plugin.name, weight, plugin.extension_points(), declared)
                for profile, declared in zip(profiles, self.declared.profiles, strict=True)
            )
        return replace(self, profiles=profiles)

    def without_plugins(self, names: Collection[str]) -> "SchedulerConfiguration":
        """Return the configuration with these plugins disabled at all extension points of all profiles."""
        profiles = tuple(
            replace(
                profile,
                plugins={
                    point: tuple(each for each in entries if each.name not in names)
                    for point, entries in profile.plugins.items()
                },
            )
            for profile in self.profiles
        )
        return replace(self, profiles=profiles)


class Examination(msgspec.Struct, frozen=True):
    """The result of each step of loading a configuration.

    Attributes:
        stage: the step that rejected the configuration; None if it is valid.
        error: the error of that step, joined as upstream does.
        messages: the individual validation messages.
        declared: the file with its defaults, unless decoding failed.
        configuration: the whole configuration, if it passed every step.
        remarks: the individual problems found while decoding or building.
    """

    stage: Stage | None = None
    error: str | None = None
    messages: tuple[str, ...] = ()
    declared: KubeSchedulerConfiguration | None = None
    configuration: SchedulerConfiguration | None = None
    remarks: tuple[Remark, ...] = ()


def load_configuration(
    source: Source,
    *,
    where: str = "",
    feature_gates: FeatureGates | None = None,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
    check_tls: CheckTls | None = None,
    plugin_names: Collection[str] = (),
) -> SchedulerConfiguration:
    """Return a configuration after decoding, defaulting, validating and building it.

    Args:
        source: the configuration.
        where: the name of the configuration in errors, e.g. the file name.
        feature_gates: the feature gates; by default those of the release.
        extension_points_of: the function that returns the extension points of a plugin; the default knows only in-tree
            plugins. If there are custom plugins, pass `Registry.extension_points_for_configuration`.
        check_tls: checks the certificates of extenders; without it they are not checked.
        plugin_names: names of custom plugins, for suggestions.

    Raises:
        ConfigurationError: upstream would reject it. For a text with `where`, the error lists all problems with their
            lines and columns; otherwise it is upstream's message.
    """

    def examine(source: Source) -> Examination:
        return examine_configuration(
            source, feature_gates=feature_gates, extension_points_of=extension_points_of, check_tls=check_tls
        )

    found = examine(source)
    if found.configuration is not None:
        return found.configuration
    if where and isinstance(source, str | bytes):
        # Only a rejected file needs the positions of its fields.
        from bayplan.framework.configuration.problems import invalid_configuration

        text = _text_of(source).decode("utf-8", "replace")
        raise invalid_configuration(text, where, found, examine, [*IN_TREE_EXTENSION_POINTS, *plugin_names])
    raise ConfigurationError(found.error or "", where=where)


def default_configuration(
    feature_gates: FeatureGates | None = None,
    *,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
) -> SchedulerConfiguration:
    """Return the configuration of a file that sets nothing."""
    header = {"apiVersion": API_VERSION, "kind": KIND}
    return load_configuration(header, feature_gates=feature_gates, extension_points_of=extension_points_of)


def examine_configuration(
    source: Source,
    *,
    feature_gates: FeatureGates | None = None,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
    check_tls: CheckTls | None = None,
) -> Examination:
    """Run a configuration through all steps; return the results up to the step that rejected it.

    Arguments as for `load_configuration`.
    """
    gates = feature_gates if feature_gates is not None else FeatureGates()
    try:
        declared = decode_document(_text_of(source), gates)
    except DecodeError as error:
        return Examination("decode", str(error), remarks=error.remarks)
    if messages := validate_document(declared, gates):
        return Examination("validation", join_errors(messages), tuple(messages), declared)
    try:
        configuration = _build(declared, gates, extension_points_of, check_tls)
    except BuildError as error:
        return Examination("build", str(error), declared=declared, remarks=error.remarks)
    return Examination(declared=declared, configuration=configuration)


def _text_of(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, str):
        return source.encode("utf-8", "replace")
    try:
        return json.dumps(dict(source)).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as problem:
        wanted = "dicts with string keys, lists, strings, numbers and booleans"
        raise DecodeError(f"configuration: expected {wanted}: {problem}") from None


def _build(
    declared: KubeSchedulerConfiguration,
    feature_gates: FeatureGates,
    extension_points_of: ExtensionPointsOf,
    check_tls: CheckTls | None,
) -> SchedulerConfiguration:
    extenders = build_extenders(declared.extenders, check_tls)
    profiles = apply_ignored_resources(declared.profiles, declared.extenders)
    try:
        built = build_profiles(profiles, feature_gates, extension_points_of)
    except BuildError as error:
        located = [remark for remark in error.remarks if remark.steps]
        raise BuildError(f"initializing profiles: {error}", located, steps=("profiles",)) from None
    return SchedulerConfiguration(replace(declared, profiles=profiles), built, extenders)


def declared_document(declared: KubeSchedulerConfiguration) -> dict[str, JsonValue]:
    """Return a declared configuration as a v1 document, with the fields in upstream's order."""
    return {"kind": KIND, "apiVersion": API_VERSION, **encode_struct(declared)}
