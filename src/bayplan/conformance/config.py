"""Answer recorded configuration cases: load a case's configuration and return the result in the recorded format."""

from collections.abc import Mapping

from bayplan.base.errors import ConfigurationError
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.extension_points import ExtensionPoint
from bayplan.framework.configuration.loading import SchedulerConfiguration, declared_document, examine_configuration
from bayplan.framework.configuration.plugin_arguments import NodeResourcesFitArgs
from bayplan.framework.feature_gates import FeatureGates


def answer_config_case(case: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return the answer to a case of ``conformance/config`` (``id``, ``yaml`` and optionally ``featureGates``).

    The answer has the fields of the recording; ``stage`` is ``featureGates`` if the gates themselves are rejected.
    """
    answer: dict[str, JsonValue] = {
        "id": str(case["id"]),
        "stage": None,
        "error": None,
        "config": None,
        "validation": [],
        "profiles": None,
        "ignoredResources": None,
    }
    try:
        gates = FeatureGates.from_mapping(_gates(case.get("featureGates")))
    except ConfigurationError as error:
        return {**answer, "stage": "featureGates", "error": str(error)}
    found = examine_configuration(str(case["yaml"]), feature_gates=gates, check_tls=check_extender_tls)
    answer["stage"], answer["error"] = found.stage, found.error
    answer["validation"] = list(found.messages)
    if found.declared is not None:
        answer["config"] = declared_document(found.declared)
    if found.configuration is not None:
        answer["profiles"] = _profiles(found.configuration)
        answer["ignoredResources"] = _ignored_resources(found.configuration)
    return answer


def _gates(given: object) -> dict[str, bool]:
    return {str(name): bool(value) for name, value in given.items()} if isinstance(given, Mapping) else {}


def _profiles(configuration: SchedulerConfiguration) -> dict[str, JsonValue]:
    """Return the plugins of every profile by extension point, with their weights; points without plugins are omitted."""
    return {
        profile.scheduler_name: {
            point.json_name: [[plugin.name, plugin.weight] for plugin in plugins]
            for point in ExtensionPoint
            if (plugins := profile.plugins[point])
        }
        for profile in configuration.profiles
    }


def _ignored_resources(configuration: SchedulerConfiguration) -> dict[str, JsonValue] | None:
    ignored: dict[str, JsonValue] = {}
    for profile in configuration.profiles:
        args = profile.plugin_arguments.get("NodeResourcesFit")
        if isinstance(args, NodeResourcesFitArgs) and args.ignored_resources:
            ignored[profile.scheduler_name] = list(args.ignored_resources)
    return ignored or None
