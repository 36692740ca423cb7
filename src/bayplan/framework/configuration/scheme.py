"""Identify a configuration (kind and version), decode it strictly, and fill in defaults.

The steps, and thus the error that is reported first, have the order of kube-scheduler's loader: identity, types,
arguments of plugins, and finally all unknown and duplicate fields together.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from bayplan.base.go_text.json import json_text
from bayplan.base.go_text.quoting import quote
from bayplan.framework.configuration.decode import DecodeError, Remark, decode_struct
from bayplan.framework.configuration.defaults import default_document
from bayplan.framework.configuration.document import KubeSchedulerConfiguration, PluginConfig, RawArguments
from bayplan.framework.configuration.field_errors import Step
from bayplan.framework.configuration.json_tree import (
    JsonNode,
    JsonObject,
    JsonSyntaxError,
    kind_of,
    parse_json,
    plain_value,
)
from bayplan.framework.configuration.plugin_arguments import ARGUMENT_TYPES, PluginArguments, argument_type_of
from bayplan.framework.configuration.schema import Struct
from bayplan.framework.feature_gates import FeatureGates

GROUP: Final = "kubescheduler.config.k8s.io"
VERSION: Final = "v1"
INTERNAL_VERSION: Final = "__internal"

_SCHEME: Final = "pkg/runtime/scheme.go:111"
_FIND_KIND: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_KINDS: Final[Mapping[str, type[Struct]]] = MappingProxyType(
    {KubeSchedulerConfiguration.__name__: KubeSchedulerConfiguration, **ARGUMENT_TYPES}
)


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The version and kind that an object declares."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """Return group and version as in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """Return kind and group as in error texts."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def decode_document(text: bytes, feature_gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Decode a configuration file and fill in its defaults.

    Raises:
        DecodeError: the text is rejected; the message is upstream's.
    """
    tree, complaint = _tree_of_text(text)
    return _decode_tree(tree, text.decode("utf-8", "replace"), complaint, feature_gates)


def decode_document_tree(tree: JsonNode, feature_gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Decode a configuration that is already parsed; see `decode_document`."""
    return _decode_tree(tree, "the given object", None, feature_gates)


def _tree_of_text(text: bytes) -> tuple[JsonNode, str | None]:
    """Parse JSON if the text begins with a brace, else YAML.

    Return the tree, and the problem of duplicate keys or None.
    """
    decoded = text.decode("utf-8", "replace")
    if not decoded.lstrip().startswith("{"):
        # Most runs have no configuration of their own and don't need YAML.
        from bayplan.framework.configuration.yaml_tree import YamlError, read_yaml

        try:
            document = read_yaml(text)
        except YamlError as error:
            raise DecodeError(str(error)) from None
        return document.tree, document.complaint
    try:
        return parse_json(decoded), None
    except JsonSyntaxError as error:
        raise _no_identity(str(error)) from None
    except RecursionError:
        raise _no_identity("exceeded max depth") from None


def _decode_tree(
    tree: JsonNode, text: str, complaint: str | None, feature_gates: FeatureGates
) -> KubeSchedulerConfiguration:
    identity = _identify(tree)
    if not identity.kind:
        missing = "Object 'Kind' is missing"
        raise DecodeError(f"{missing} in '{text}'", [Remark(missing, ("kind",))])
    if not identity.version:
        raise DecodeError(f"Object 'apiVersion' is missing in '{text}'", steps=("apiVersion",))
    document, remarks = _decode_object(tree, identity)
    texts = [remark.text for remark in remarks]
    if complaint is not None:
        texts.insert(0, complaint)
        remarks = (*map(Remark, complaint.splitlines()[1:]), *remarks)
    internal = identity.version == INTERNAL_VERSION
    if isinstance(document, KubeSchedulerConfiguration) and not internal:
        document = _decode_nested(document, texts, remarks := [*remarks])
    if remarks:
        raise DecodeError(_strict(texts), remarks)
    if not isinstance(document, KubeSchedulerConfiguration):
        shown = f"{identity.group}/{identity.version}, Kind={identity.kind}"
        raise DecodeError(f"couldn't decode as KubeSchedulerConfiguration, got {shown}: ")
    if not internal:
        document = default_document(document, feature_gates)
    return replace(document, api_version=identity.api_version)


def _strict(texts: Iterable[str]) -> str:
    return f"strict decoding error: {', '.join(texts)}"


def _identify(tree: JsonNode) -> GroupVersionKind:
    """Return kind and version, ignoring the case of their keys.

    Upstream identifies objects less strictly than it decodes them.
    """
    if tree is not None and not isinstance(tree, JsonObject):
        raise _no_identity(f"json: cannot unmarshal {kind_of(tree)} into Go value of type {_FIND_KIND}")
    values = {"apiVersion": "", "kind": ""}
    names = {name.upper(): name for name in values}
    error: DecodeError | None = None
    for key, value in tree.pairs if tree is not None else ():
        name = names.get(key.upper())
        if name is None or value is None:
            continue
        if isinstance(value, str):
            values[name] = value
        elif error is None:
            text = f"json: cannot unmarshal {kind_of(value)} into Go struct field .{name} of type string"
            error = _no_identity(text, steps=(name,))
    if error is not None:
        raise error
    group, version = _group_version(values["apiVersion"])
    return GroupVersionKind(group, version, values["kind"])


def _no_identity(reason: str, *, steps: tuple[Step, ...] = ()) -> DecodeError:
    return DecodeError(f"couldn't get version/kind; json parse error: {reason}", steps=steps)


def _group_version(api_version: str) -> tuple[str, str]:
    if api_version in ("", "/"):
        return "", ""
    parts = api_version.split("/")
    if len(parts) > 2:
        raise DecodeError(f"unexpected GroupVersion string: {api_version}")
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _decode_object(tree: JsonNode, identity: GroupVersionKind) -> tuple[Struct, Sequence[Remark]]:
    """Decode an object of a registered kind; return it with the remarks of strict decoding."""
    struct = _KINDS.get(identity.kind)
    internal = identity.version == INTERNAL_VERSION
    if identity.group == GROUP and identity.version in (VERSION, INTERNAL_VERSION) and struct is not None:
        return decode_struct(tree, struct, internal=internal)
    version = f"the internal version of group {quote(identity.group)}"
    if not internal:
        version = f"version {quote(identity.api_version)}"
    text = f"no kind {quote(identity.kind)} is registered for {version} in scheme {quote(_SCHEME)}"
    raise DecodeError(text, steps=("apiVersion",))


def _decode_nested(
    document: KubeSchedulerConfiguration, texts: list[str], remarks: list[Remark]
) -> KubeSchedulerConfiguration:
    """Decode the arguments of in-tree plugins; add their strict errors to `texts` and `remarks`."""
    profiles = []
    for number, profile in enumerate(document.profiles):
        entries = []
        for index, entry in enumerate(profile.plugin_config):
            steps: tuple[Step, ...] = ("profiles", number, "pluginConfig", index, "args")
            place = f"decoding .profiles[{number}].pluginConfig[{index}]: "
            try:
                decoded, found = _decode_arguments(entry)
            except DecodeError as error:
                raise DecodeError(f"{place}{error}", _inside(steps, error.remarks)) from None
            if found:
                inner = _strict(remark.text for remark in found)
                texts.append(place + _strict([f"decoding args for plugin {entry.name}: {inner}"]))
                remarks += _inside(steps, found)
            entries.append(decoded)
        profiles.append(replace(profile, plugin_config=tuple(entries)))
    return replace(document, profiles=tuple(profiles))


def _inside(steps: tuple[Step, ...], remarks: Iterable[Remark]) -> list[Remark]:
    return [remark._replace(steps=(*steps, *remark.steps)) for remark in remarks]


def _decode_arguments(entry: PluginConfig) -> tuple[PluginConfig, Sequence[Remark]]:
    """Decode the arguments of one plugin into their type; without a known type, leave them unchanged."""
    expected = argument_type_of(entry.name)
    if expected is None:
        return entry, ()
    tree = entry.args.tree if isinstance(entry.args, RawArguments) else None
    try:
        identity = _with_defaults(_identify(tree), GroupVersionKind(GROUP, VERSION, expected.__name__))
        if not identity.version:
            missing = f"Object 'apiVersion' is missing in '{json_text(plain_value(tree))}'"
            raise DecodeError(missing, steps=("apiVersion",))
        args, remarks = _decode_object(tree, identity)
    except DecodeError as error:
        raise DecodeError(f"decoding args for plugin {entry.name}: {error}", error.remarks) from None
    wanted = replace(identity, group=GROUP, kind=expected.__name__).group_kind
    if identity.group_kind != wanted:
        raise DecodeError(f"args for plugin {entry.name} were not of type {wanted}, got {identity.group_kind}")
    assert isinstance(args, PluginArguments)
    return replace(entry, args=args, defaulted=identity.version != INTERNAL_VERSION), remarks


def _with_defaults(identity: GroupVersionKind, default: GroupVersionKind) -> GroupVersionKind:
    """Return the identity with the kind and version that the arguments omit."""
    kind = identity.kind or default.kind
    if not identity.version and identity.group in ("", default.group):
        return GroupVersionKind(default.group, default.version, kind)
    return replace(identity, kind=kind)
