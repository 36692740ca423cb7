"""Load a scheduler configuration: from a text, from parsed data, or the default one.

`load_configuration` is what the rest of the program uses; it raises. `examine_configuration` gives every step's outcome as a
value. The steps are upstream's: decode (with defaults), validate, build.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final, Literal

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.custom_plugins import enable_plugin
from bayplan.framework.configuration.decode import DecodeError
from bayplan.framework.configuration.document import (
    ClientConnectionConfiguration,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    PluginConfig,
)
from bayplan.framework.configuration.encode import API_VERSION, encode_struct
from bayplan.framework.configuration.extenders import CheckTls, apply_ignored_resources, build_extenders, with_timeout
from bayplan.framework.configuration.extension_points import (
    IN_TREE_EXTENSION_POINTS,
    ExtensionPointsOf,
    in_tree_extension_points,
)
from bayplan.framework.configuration.json_tree import JsonValue, tree_of
from bayplan.framework.configuration.profiles import (
    BuildError,
    ProfileConfiguration,
    build_profiles,
)
from bayplan.framework.configuration.scheme import decode_document, decode_document_tree
from bayplan.framework.configuration.validation import validate_document
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.selectors import join_errors

Stage = Literal["decode", "validation", "build"]

KIND: Final = "KubeSchedulerConfiguration"


class SchedulerConfiguration(msgspec.Struct, frozen=True):
    """A configuration that the scheduler can run with.

    Attributes:
        declared: the file with its defaults filled in; what extenders ignore is in the arguments already.
        profiles: in the order of the file, names are unique.
        extenders: in the order in which they are asked.

    Class attributes:
        max_score: the largest normalised score of a plugin.
    """

    max_score: ClassVar[int] = 100
    declared: KubeSchedulerConfiguration
    profiles: tuple[ProfileConfiguration, ...]
    extenders: tuple[Extender, ...]

    @property
    def parallelism(self) -> int:
        """How many goroutines upstream uses; kept for what depends on it (chunk sizes)."""
        return self.declared.parallelism

    @property
    def percentage_of_nodes_to_score(self) -> int:
        """What profiles use that have no percentage of their own; 0 means adaptive."""
        return self.declared.percentage_of_nodes_to_score or 0

    @property
    def pod_initial_backoff_seconds(self) -> int:
        """The backoff of a pod after its first failed attempt."""
        return self.declared.pod_initial_backoff_seconds

    @property
    def pod_max_backoff_seconds(self) -> int:
        """The longest backoff of a pod."""
        return self.declared.pod_max_backoff_seconds

    @property
    def leader_election(self) -> LeaderElectionConfiguration:
        """How replicas of the scheduler agree on one that works."""
        return self.declared.leader_election

    @property
    def client_connection(self) -> ClientConnectionConfiguration:
        """How the API server is talked to."""
        return self.declared.client_connection

    @property
    def delay_cache_until_active(self) -> bool:
        """Whether caches are filled only by the replica that leads."""
        return self.declared.delay_cache_until_active

    def profile(self, scheduler_name: str) -> ProfileConfiguration | None:
        """Give the profile for the pods of a scheduler name; None where no profile is responsible."""
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                return profile
        return None

    def effective_document(self) -> dict[str, JsonValue]:
        """Write the configuration as ``kube-scheduler --write-config-to`` does.

        Compared with the declared one, arguments of plugins that are not enabled are left out, the others stand in name order, and
        extenders without a timeout have the default one.
        """
        profiles = []
        for declared, built in zip(self.declared.profiles, self.profiles, strict=True):
            entries = tuple(entry for entry in declared.plugin_config if entry.name in built.plugin_arguments)
            profiles.append(replace(declared, plugin_config=tuple(sorted(entries, key=_name))))
        extenders = tuple(with_timeout(extender) for extender in self.declared.extenders)
        return declared_document(replace(self.declared, profiles=tuple(profiles), extenders=extenders))

    def with_plugins(
        self, plugins: Iterable[tuple[str, int]], extension_points_of: ExtensionPointsOf
    ) -> "SchedulerConfiguration":
        """Enable custom plugins, given as names and weights, in every profile; see `enable_plugin`."""
        profiles = self.profiles
        for name, weight in plugins:
            points = extension_points_of(name) or ()
            profiles = tuple(
                enable_plugin(profile, declared, name, weight, points)
                for profile, declared in zip(profiles, self.declared.profiles, strict=True)
            )
        return replace(self, profiles=profiles)


class Examination(msgspec.Struct, frozen=True):
    """What became of a configuration, step by step.

    Attributes:
        stage: the step that refused it; None for a good one.
        error: that step's error, as upstream joins it.
        messages: the single messages of validation.
        declared: the file with its defaults, unless decoding failed.
        configuration: the whole configuration, where every step was passed.
    """

    stage: Stage | None
    error: str | None
    messages: tuple[str, ...]
    declared: KubeSchedulerConfiguration | None
    configuration: SchedulerConfiguration | None


def load_configuration(
    text: str | bytes,
    *,
    where: str = "",
    feature_gates: FeatureGates | None = None,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
    check_tls: CheckTls | None = None,
    plugin_names: Collection[str] = (),
) -> SchedulerConfiguration:
    """Load a configuration file.

    Args:
        text: YAML or JSON.
        where: what to call it in errors: a file name.
        feature_gates: which gates are on; the defaults of the release if not given.
        extension_points_of: tells which plugins there are and what they implement; the in-tree ones if not given. For custom
            ones beside them see `with_custom_plugins`.
        check_tls: looks at the certificates of extenders; they stay unread if not given.
        plugin_names: names of custom plugins, for suggestions.

    Raises:
        ConfigurationError: upstream would refuse it. With `where` the error lists all problems with their lines and columns;
            without, it is upstream's message.
    """

    def examine(source: str | bytes) -> Examination:
        return examine_configuration(
            source, feature_gates=feature_gates, extension_points_of=extension_points_of, check_tls=check_tls
        )

    found = examine(text)
    if found.configuration is None and where:
        # Only a refused file needs the places of its fields.
        from bayplan.framework.configuration.refusal import refusal

        written = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise refusal(written, where, found, examine, [*IN_TREE_EXTENSION_POINTS, *plugin_names])
    return _accepted(found, where)


def load_configuration_mapping(
    document: Mapping[str, object],
    *,
    where: str = "",
    feature_gates: FeatureGates | None = None,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
    check_tls: CheckTls | None = None,
) -> SchedulerConfiguration:
    """Load a configuration that is parsed already: plain dicts, lists and scalars; see `load_configuration`."""
    found = examine_configuration(
        document, feature_gates=feature_gates, extension_points_of=extension_points_of, check_tls=check_tls
    )
    return _accepted(found, where)


def _accepted(found: Examination, where: str) -> SchedulerConfiguration:
    if found.configuration is None:
        raise ConfigurationError(found.error or "", where=where)
    return found.configuration


def default_configuration(
    feature_gates: FeatureGates | None = None,
    *,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
) -> SchedulerConfiguration:
    """Give the configuration that holds where none is given."""
    header = {"apiVersion": API_VERSION, "kind": KIND}
    return load_configuration_mapping(header, feature_gates=feature_gates, extension_points_of=extension_points_of)


def examine_configuration(
    source: str | bytes | Mapping[str, object],
    *,
    feature_gates: FeatureGates | None = None,
    extension_points_of: ExtensionPointsOf = in_tree_extension_points,
    check_tls: CheckTls | None = None,
) -> Examination:
    """Take a configuration through all steps and say how far it came; arguments as for `load_configuration`."""
    gates = feature_gates if feature_gates is not None else FeatureGates()
    try:
        if isinstance(source, str | bytes):
            text = source.encode("utf-8", "replace") if isinstance(source, str) else source
            declared = decode_document(text, gates)
        else:
            declared = decode_document_tree(tree_of(source), gates)
    except DecodeError as error:
        return Examination("decode", str(error), (), None, None)
    if messages := validate_document(declared, gates):
        return Examination("validation", join_errors(messages), tuple(messages), declared, None)
    try:
        configuration = _build(declared, gates, extension_points_of, check_tls)
    except BuildError as error:
        return Examination("build", str(error), (), declared, None)
    return Examination(None, None, (), declared, configuration)


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
        raise BuildError(f"initializing profiles: {error}") from None
    return SchedulerConfiguration(replace(declared, profiles=profiles), built, extenders)


def declared_document(declared: KubeSchedulerConfiguration) -> dict[str, JsonValue]:
    """Write a declared configuration as v1, in upstream's order of fields."""
    return {"kind": KIND, "apiVersion": API_VERSION, **encode_struct(declared)}


def effective_document(configuration: SchedulerConfiguration) -> dict[str, JsonValue]:
    """Write a configuration as ``kube-scheduler --write-config-to`` does."""
    return configuration.effective_document()


def _name(entry: PluginConfig) -> bytes:
    return entry.name.encode()
