"""Convert a configuration of an older release to v1: translate the settings that v1 supports, and report the others.

kube-scheduler itself rejects older versions. This module reads KubeSchedulerConfiguration v1alpha1 to v1beta3, Policy
files, and ConfigMaps that contain one of these. The result is a v1 document that is validated like any other.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.base.errors import ConfigurationError
from bayplan.formats.json_tree import JsonValue, plain_value
from bayplan.framework.configuration.conversion import Conversion, Document, object_of, objects_in
from bayplan.framework.configuration.document import API_VERSION, GROUP, KIND
from bayplan.framework.configuration.field_errors import Step
from bayplan.framework.configuration.legacy_profiles import convert_profile
from bayplan.framework.configuration.legacy_shapes import CONFIGURATION, POLICY, check_shape
from bayplan.framework.configuration.policy_conversion import convert_policy
from bayplan.framework.configuration.positions import TextPositions
from bayplan.framework.configuration.scheme import tree_of_text
from bayplan.framework.configuration.struct_codec import DecodeError

VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3", "v1")

MAX_DEPTH = 100
"""Maximum depth of a document. Real ones have less than 20 levels, and writers of YAML recurse."""

_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")
_NOT_COPIED = (
    *("apiVersion", "kind", "profiles", "extenders", "schedulerName", "algorithmSource", "plugins", "pluginConfig"),
    *("hardPodAffinitySymmetricWeight", "bindTimeoutSeconds", "disablePreemption"),
)
"""Fields that v1 lacks or that have another form in v1."""

_OLD_SETTINGS = (
    ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
    ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
)
"""Settings that older versions had at the top level, for all profiles; the plugin, and its argument in v1."""

_ELECTION_NAMES = {"lockObjectName": "resourceName", "lockObjectNamespace": "resourceNamespace"}


class _Source(NamedTuple):
    """A document to be converted: its text and content, its version, and the ConfigMap entry that holds it, or ""."""

    text: str
    document: Document
    version: str
    entry: str = ""


def convert_text(text: str, *, where: str = "") -> Conversion:
    """Convert the YAML or JSON text of a configuration. `where`: its name in errors.

    Raises:
        ConfigurationError: the text can't be parsed, is not a configuration that can be converted, or has a field of the
            wrong type.
    """
    source = _source_of(text, where)
    found = _convert(source, where)
    if source.entry:
        found.notes.insert(0, (f"$.data[{source.entry}]", "this is what was converted"))
    return found


def is_convertible(text: str) -> bool:
    """Return whether a text is a configuration of a version that `convert_text` reads; its fields may be invalid."""
    try:
        _source_of(text, "")
    except ConfigurationError:
        return False
    return True


def _source_of(text: str, where: str) -> _Source:
    document = _parse(text, where)
    entry = ""
    if document.get("kind") == "ConfigMap":
        entry, text, document = _embedded(document, where)
    return _Source(text, document, _version(document, where), entry)


def _parse(text: str, where: str) -> Document:
    try:
        value = plain_value(tree_of_text(text.encode("utf-8", "replace"))[0])
    except DecodeError as error:
        raise ConfigurationError(str(error), where=where) from None
    except RecursionError:
        raise _too_deep(where) from None
    if not isinstance(value, dict):
        got = type(value).__name__
        raise ConfigurationError("configuration", where=where, wanted="an object", got=got, hint=f"kind: {KIND}")
    if _is_deeper(value, MAX_DEPTH):
        raise _too_deep(where)
    return value


def _is_deeper(value: JsonValue, limit: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(limit == 0 or _is_deeper(each, limit - 1) for each in inner)


def _too_deep(where: str) -> ConfigurationError:
    wanted = f"objects and lists nested at most {MAX_DEPTH} levels deep"
    return ConfigurationError("configuration", where=where, wanted=wanted, got="more levels", hint="removing them")


def _embedded(document: Document, where: str) -> tuple[str, str, Document]:
    """Return the name, text and content of the ConfigMap entry that holds a configuration."""
    for name, text in object_of(document.get("data")).items():
        if isinstance(text, str) and (KIND in text or "Policy" in text):
            inner = _parse(text, where)
            if inner.get("kind") == KIND or _is_policy(inner):
                return name, text, inner
    raise ConfigurationError(
        "ConfigMap", where=where, wanted="one that holds a scheduler configuration", got="none in its data"
    )


def _is_policy(document: Document) -> bool:
    kind = document.get("kind")
    return kind == "Policy" or (not kind and ("predicates" in document or "priorities" in document))


def _version(document: Document, where: str) -> str:
    """Return one of `VERSIONS`, or "Policy".

    Raises:
        ConfigurationError: the document is neither.
    """
    if _is_policy(document):
        return "Policy"
    api_version = str(document.get("apiVersion") or "")
    group, _, version = api_version.partition("/")
    if document.get("kind") != KIND or group != GROUP or version not in VERSIONS:
        raise ConfigurationError(
            "configuration",
            where=where,
            got=f"{document.get('kind') or 'object without a kind'} {api_version}".strip(),
            wanted=f"{KIND} {GROUP}/{VERSIONS[0]} to v1, or a Policy",
        )
    return version


def _convert(source: _Source, where: str) -> Conversion:
    document, version = source.document, source.version
    found = Conversion(str(document.get("apiVersion")))
    if version == "v1":
        found.document = document
        found.note("$.apiVersion", "this is v1 already: nothing was changed")
        return found
    is_policy = version == "Policy"
    check_shape(document, POLICY if is_policy else CONFIGURATION, lambda steps: _position(source, where, steps))
    if is_policy:
        return convert_policy(document)
    _convert_configuration(document, version, found)
    return found


def _position(source: _Source, where: str, steps: tuple[Step, ...]) -> str:
    """Return file, line and column of a field; in a ConfigMap, line and column are those in its entry."""
    place = TextPositions(source.text).place(steps)
    if source.entry:
        where = f"{where} $.data[{source.entry}]".lstrip()
    return f"{where}:{place.line}:{place.column}" if where and place.line else where


def _convert_configuration(old: Document, version: str, found: Conversion) -> None:
    new = found.document
    new |= {"apiVersion": API_VERSION, "kind": KIND}
    for name, value in old.items():
        if name in _ADDRESSES:
            if value:
                found.note(f"$.{name}", "left out: addresses are options of the program: --bind-address, --secure-port")
        elif name not in _NOT_COPIED:
            new[name] = value
    if isinstance(election := old.get("leaderElection"), dict):
        new["leaderElection"] = _leader_election(election, found)
    if isinstance(connection := old.get("clientConnection"), dict):
        new["clientConnection"] = {key: value for key, value in connection.items() if value is not None}
    found.add_extenders(old.get("extenders"))
    declared = objects_in(old.get("profiles"))
    if version == "v1alpha1" or not declared:
        declared = [_only_profile(old, found)]
    profiles = [
        convert_profile(_with_old_settings(each, old, found), version, f"$.profiles[{number}]", found)
        for number, each in enumerate(declared)
    ]
    if old.get("disablePreemption"):
        for profile in profiles:
            off: Document = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
            profile["plugins"] = object_of(profile.get("plugins")) | off
        found.note("$.disablePreemption", "became DefaultPreemption disabled at postFilter")
    new["profiles"] = list[JsonValue](profiles)


def _leader_election(old: Document, found: Conversion) -> JsonValue:
    new: Document = {_ELECTION_NAMES.get(name, name): value for name, value in old.items()}
    if new.get("resourceLock") not in (None, "", "leases"):
        found.note("$.leaderElection.resourceLock", f"{new['resourceLock']} became leases, the only lock there is")
        new["resourceLock"] = "leases"
    return new


def _only_profile(old: Document, found: Conversion) -> Document:
    """Return the profile that a configuration without profiles implies."""
    profile = {name: old[name] for name in ("plugins", "pluginConfig") if old.get(name)}
    if isinstance(name := old.get("schedulerName"), str) and name:
        profile["schedulerName"] = name
    source = object_of(old.get("algorithmSource"))
    if source.get("policy"):
        found.note("$.algorithmSource.policy", "left out: convert the Policy file itself, or see --mode classic")
    elif source.get("provider") == "ClusterAutoscalerProvider":
        plugins = object_of(profile.get("plugins"))
        score = object_of(plugins.get("score"))
        enabled: list[JsonValue] = [
            {"name": "NodeResourcesMostAllocated", "weight": 1},
            *objects_in(score.get("enabled")),
        ]
        profile["plugins"] = {**plugins, "score": {**score, "enabled": enabled}}
        found.note("$.algorithmSource.provider", "ClusterAutoscalerProvider became the strategy MostAllocated")
    return profile


def _with_old_settings(profile: Document, old: Document, found: Conversion) -> Document:
    """Return a profile with `_OLD_SETTINGS` as arguments of plugins that have no arguments."""
    configured = objects_in(profile.get("pluginConfig"))
    names = {str(each.get("name")) for each in configured}
    for setting, plugin, argument in _OLD_SETTINGS:
        if old.get(setting) is not None and plugin not in names:
            configured.append({"name": plugin, "args": {argument: old[setting]}})
            found.note(f"$.{setting}", f"became {argument} of {plugin}")
    return {**profile, "pluginConfig": list[JsonValue](configured)}
