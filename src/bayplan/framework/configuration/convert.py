"""Convert a configuration of an older release to v1: translate the settings that v1 supports, and report the others.

kube-scheduler itself rejects older versions. This module reads KubeSchedulerConfiguration v1alpha1 to v1beta3, Policy
files, and ConfigMaps that contain one of these. The result is a v1 document that is validated like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.conversion import KIND, Conversion, Document, convert_extender
from bayplan.framework.configuration.encode import API_VERSION
from bayplan.framework.configuration.json_tree import JsonSyntaxError, JsonValue, parse_json, plain_value
from bayplan.framework.configuration.legacy_profiles import convert_profile
from bayplan.framework.configuration.policy_conversion import convert_policy
from bayplan.framework.configuration.yaml_tree import YamlError, read_yaml

GROUP = "kubescheduler.config.k8s.io"
VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3", "v1")

_SERVING = "addresses are options of the program: --bind-address, --secure-port"
_DROPPED = {
    "healthzBindAddress": _SERVING,
    "metricsBindAddress": _SERVING,
    "schedulerName": "",
    "algorithmSource": "",
    "hardPodAffinitySymmetricWeight": "",
    "bindTimeoutSeconds": "",
    "disablePreemption": "",
    "plugins": "",
    "pluginConfig": "",
    "profiles": "",
    "apiVersion": "",
    "kind": "",
}
"""Fields that are not copied, because v1 lacks them or other code handles them.

The value is the note to add, if any.
"""


def convert_text(text: str, *, where: str = "") -> Conversion:
    """Convert the YAML or JSON text of a configuration. `where`: its name in errors.

    Raises:
        ConfigurationError: the text can't be parsed, or is not a configuration that can be converted.
    """
    document = _parse(text, where)
    if document.get("kind") == "ConfigMap":
        name, document = _embedded(document, where)
        found = _convert(document, where)
        found.notes.insert(0, (f"$.data[{name}]", "this is what was converted"))
        return found
    return _convert(document, where)


def _parse(text: str, where: str) -> Document:
    try:
        if text.lstrip().startswith("{"):
            tree = parse_json(text)
        else:
            tree = read_yaml(text.encode("utf-8", "replace")).tree
    except (YamlError, JsonSyntaxError) as error:
        raise ConfigurationError(str(error), where=where) from None
    value = plain_value(tree)
    if not isinstance(value, dict):
        raise ConfigurationError("configuration", where=where, wanted="an object", got=type(value).__name__)
    return value


def _embedded(document: Document, where: str) -> tuple[str, Document]:
    """Return the name and the content of the ConfigMap entry that holds a configuration."""
    data = document.get("data")
    for name, text in data.items() if isinstance(data, dict) else ():
        if isinstance(text, str) and ("KubeSchedulerConfiguration" in text or '"Policy"' in text or "Policy" in text):
            inner = _parse(text, where)
            if _is_convertible(inner):
                return name, inner
    raise ConfigurationError(
        "ConfigMap", where=where, wanted="one that holds a scheduler configuration", got="none in its data"
    )


def _is_convertible(document: Document) -> bool:
    return document.get("kind") in (KIND, "Policy") or "predicates" in document or "priorities" in document


def _convert(document: Document, where: str) -> Conversion:
    if document.get("kind") == "Policy" or (not document.get("kind") and _is_convertible(document)):
        return convert_policy(document)
    api_version = str(document.get("apiVersion") or "")
    group, _, version = api_version.partition("/")
    if document.get("kind") != KIND or group != GROUP or version not in VERSIONS:
        what = f"{document.get('kind') or 'object without a kind'} {api_version}".strip()
        raise ConfigurationError(
            "configuration",
            where=where,
            got=what,
            wanted=f"{KIND} {GROUP}/{VERSIONS[0]} to v1, or a Policy",
        )
    found = Conversion(api_version)
    if version == "v1":
        found.document = document
        found.note("$.apiVersion", "this is v1 already: nothing was changed")
        return found
    _convert_configuration(document, version, found)
    return found


def _convert_configuration(old: Document, version: str, found: Conversion) -> None:
    new: Document = {"apiVersion": API_VERSION, "kind": KIND}
    for name, value in old.items():
        if name not in _DROPPED:
            new[name] = value
        elif _DROPPED[name] and value:
            found.note(f"$.{name}", f"left out: {_DROPPED[name]}")
    if isinstance(election := old.get("leaderElection"), dict):
        new["leaderElection"] = _leader_election(election, found)
    if isinstance(connection := new.get("clientConnection"), dict):
        new["clientConnection"] = {key: value for key, value in connection.items() if value is not None}
    extenders = new.pop("extenders", None)
    if isinstance(extenders, list):
        converted = [
            convert_extender(each, f"$.extenders[{number}]", found.note)
            for number, each in enumerate(extenders)
            if isinstance(each, dict)
        ]
        new["extenders"] = list[JsonValue](converted)
    given = old.get("profiles")
    declared = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    if version == "v1alpha1" or not declared:
        declared = [_only_profile(old, found)]
    profiles = [
        convert_profile(_with_old_settings(each, old, found), version, f"$.profiles[{number}]", found.note)
        for number, each in enumerate(declared)
    ]
    if old.get("disablePreemption"):
        for profile in profiles:
            plugins = dict(sets) if isinstance(sets := profile.get("plugins"), dict) else {}
            profile["plugins"] = {**plugins, "postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
        found.note("$.disablePreemption", "became DefaultPreemption disabled at postFilter")
    new["profiles"] = list[JsonValue](profiles)
    found.document = new


def _leader_election(old: Document, found: Conversion) -> JsonValue:
    names = {"lockObjectName": "resourceName", "lockObjectNamespace": "resourceNamespace"}
    new: Document = {names.get(name, name): value for name, value in old.items()}
    if new.get("resourceLock") not in (None, "", "leases"):
        found.note("$.leaderElection.resourceLock", f"{new['resourceLock']} became leases, the only lock there is")
        new["resourceLock"] = "leases"
    return new


def _only_profile(old: Document, found: Conversion) -> Document:
    """Return the profile that a configuration without profiles implies."""
    profile: Document = {}
    if isinstance(name := old.get("schedulerName"), str) and name:
        profile["schedulerName"] = name
    for field_name in ("plugins", "pluginConfig"):
        if old.get(field_name):
            profile[field_name] = old[field_name]
    source = old.get("algorithmSource")
    if isinstance(source, Mapping):
        if source.get("policy"):
            found.note("$.algorithmSource.policy", "left out: convert the Policy file itself, or see --mode classic")
        elif source.get("provider") == "ClusterAutoscalerProvider":
            profile["plugins"] = _most_allocated(profile.get("plugins"))
            found.note("$.algorithmSource.provider", "ClusterAutoscalerProvider became the strategy MostAllocated")
    return profile


def _most_allocated(plugins: JsonValue) -> JsonValue:
    given = dict(plugins) if isinstance(plugins, dict) else {}
    score = dict(at_score) if isinstance(at_score := given.get("score"), dict) else {}
    before = enabled if isinstance(enabled := score.get("enabled"), list) else []
    score["enabled"] = [{"name": "NodeResourcesMostAllocated", "weight": 1}, *before]
    given["score"] = score
    return given


def _with_old_settings(profile: Document, old: Document, found: Conversion) -> Document:
    """Return a profile with the settings that older versions had at the top level, for all profiles."""
    profile = dict(profile)
    entries = profile.get("pluginConfig")
    configured = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    names = {str(each.get("name")) for each in configured}
    for setting, plugin, argument in (
        ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
        ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
    ):
        if old.get(setting) is not None and plugin not in names:
            configured.append({"name": plugin, "args": {argument: old[setting]}})
            found.note(f"$.{setting}", f"became {argument} of {plugin}")
    if configured:
        profile["pluginConfig"] = list[JsonValue](configured)
    return profile
