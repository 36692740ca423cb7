"""Identify a configuration (kind and version), decode it strictly, and fill in defaults.

The steps, and thus the error that is reported first, have the order of kube-scheduler's loader: identity, types,
arguments of plugins, and finally all unknown and duplicate fields together.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from bayplan.base.go_text.json import GoJsonError, json_text
from bayplan.base.go_text.quoting import quote
from bayplan.formats.json_tree import JsonNode, JsonObject, kind_of, parse_json, plain_value
from bayplan.framework.configuration.defaults import default_document
from bayplan.framework.configuration.document import (
    GROUP,
    VERSION,
    KubeSchedulerConfiguration,
    PluginConfig,
    RawArguments,
)
from bayplan.framework.configuration.field_errors import Remark, Step, remarks_inside
from bayplan.framework.configuration.plugin_arguments import ARGUMENT_TYPES, PluginArguments, argument_type_of
from bayplan.framework.configuration.schema import Struct
from bayplan.framework.configuration.struct_codec import DecodeError, decode_struct
from bayplan.framework.feature_gates import FeatureGates

INTERNAL_VERSION: Final = "__internal"

_SCHEME: Final = "pkg/runtime/scheme.go:111"
_FIND_KIND: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_KINDS: Final[Mapping[str, type[Struct]]] = {
    KubeSchedulerConfiguration.__name__: KubeSchedulerConfiguration,
    **ARGUMENT_TYPES,
}


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The version and kind that an object declares."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """Return group and version as in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version


def decode_document(text: bytes, feature_gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Decode a configuration file and fill in its defaults.

    Raises:
        DecodeError: the text is rejected; the message is upstream's.
    """
    tree, complaint = tree_of_text(text)
    identity = _identify(tree)
    shown = text.decode("utf-8", "replace")
    if not identity.kind:
        missing = "Object 'Kind' is missing"
        raise DecodeError(f"{missing} in '{shown}'", [Remark(missing, ("kind",))])
    if not identity.version:
        raise DecodeError(f"Object 'apiVersion' is missing in '{shown}'", steps=("apiVersion",))
    document, found = _decode_object(tree, identity)
    texts, remarks = [remark.text for remark in found], [*found]
    if complaint is not None:
        texts.insert(0, complaint)
        remarks = [*map(Remark, complaint.splitlines()[1:]), *remarks]
    internal = identity.version == INTERNAL_VERSION
    if isinstance(document, KubeSchedulerConfiguration) and not internal:
        document = _decode_nested(document, feature_gates, texts, remarks)
    if remarks:
        raise DecodeError(_strict(texts), remarks)
    if not isinstance(document, KubeSchedulerConfiguration):
        got = f"{identity.group}/{identity.version}, Kind={identity.kind}"
        raise DecodeError(f"couldn't decode as KubeSchedulerConfiguration, got {got}: ")
    if not internal:
        document = default_document(document, feature_gates)
    return replace(document, api_version=identity.api_version)


def tree_of_text(text: bytes) -> tuple[JsonNode, str | None]:
    """Parse JSON if the text begins with a brace, else YAML.

    Return the tree, and go-yaml's message about duplicate keys or None.

    Raises:
        DecodeError: the text can't be parsed; the message is upstream's.
    """
    decoded = text.decode("utf-8", "replace")
    if not decoded.lstrip().startswith("{"):
        # Most runs have no configuration of their own and don't need YAML.
        from bayplan.formats.yaml_nodes import read_yaml
        from bayplan.formats.yaml_tree import GoYamlError

        try:
            return read_yaml(text)
        except GoYamlError as error:
            raise DecodeError(str(error)) from None
    try:
        return parse_json(decoded), None
    except GoJsonError as error:
        raise _no_identity(str(error)) from None
    except RecursionError:
        raise _no_identity("exceeded max depth") from None


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
    group, slash, version = values["apiVersion"].partition("/")
    if "/" in version:
        raise DecodeError(f"unexpected GroupVersion string: {values['apiVersion']}")
    return GroupVersionKind(group, version, values["kind"]) if slash else GroupVersionKind("", group, values["kind"])


def _no_identity(reason: str, *, steps: tuple[Step, ...] = ()) -> DecodeError:
    return DecodeError(f"couldn't get version/kind; json parse error: {reason}", steps=steps)


def _decode_object(tree: JsonNode, identity: GroupVersionKind) -> tuple[Struct, Sequence[Remark]]:
    """Decode an object of a registered kind; return it with the remarks of strict decoding."""
    struct = _KINDS.get(identity.kind)
    internal = identity.version == INTERNAL_VERSION
    if identity.group == GROUP and identity.version in (VERSION, INTERNAL_VERSION) and struct is not None:
        return decode_struct(tree, struct, internal=internal)
    version = (
        f"the internal version of group {quote(identity.group)}"
        if internal
        else f"version {quote(identity.api_version)}"
    )
    text = f"no kind {quote(identity.kind)} is registered for {version} in scheme {quote(_SCHEME)}"
    raise DecodeError(text, steps=("apiVersion",))


def _decode_nested(
    document: KubeSchedulerConfiguration, feature_gates: FeatureGates, texts: list[str], remarks: list[Remark]
) -> KubeSchedulerConfiguration:
    """Decode the arguments of in-tree plugins; add their strict errors to `texts` and `remarks`."""
    profiles = []
    for number, profile in enumerate(document.profiles):
        entries = []
        for index, entry in enumerate(profile.plugin_config):
            steps: tuple[Step, ...] = ("profiles", number, "pluginConfig", index, "args")
            place = f"decoding .profiles[{number}].pluginConfig[{index}]: "
            try:
                decoded, found = _decode_arguments(entry, feature_gates)
            except DecodeError as error:
                raise DecodeError(f"{place}{error}", remarks_inside(steps, error.remarks)) from None
            if found:
                inner = _strict(remark.text for remark in found)
                texts.append(place + _strict([f"decoding args for plugin {entry.name}: {inner}"]))
                remarks += remarks_inside(steps, found)
            entries.append(decoded)
        profiles.append(replace(profile, plugin_config=tuple(entries)))
    return replace(document, profiles=tuple(profiles))


def _decode_arguments(entry: PluginConfig, feature_gates: FeatureGates) -> tuple[PluginConfig, Sequence[Remark]]:
    """Decode the arguments of one plugin into their type, with defaults; without a known type, leave them unchanged."""
    expected = argument_type_of(entry.name)
    if expected is None:
        return entry, ()
    tree = entry.args.tree if isinstance(entry.args, RawArguments) else None
    try:
        identity = _identify(tree)
        kind = identity.kind or expected.__name__
        if not identity.version and identity.group in ("", GROUP):
            identity = GroupVersionKind(GROUP, VERSION, kind)
        elif not identity.version:
            missing = f"Object 'apiVersion' is missing in '{json_text(plain_value(tree))}'"
            raise DecodeError(missing, steps=("apiVersion",))
        args, remarks = _decode_object(tree, replace(identity, kind=kind))
    except DecodeError as error:
        raise DecodeError(f"decoding args for plugin {entry.name}: {error}", error.remarks) from None
    if kind != expected.__name__:
        wanted, got = f"{expected.__name__}.{GROUP}", f"{kind}.{GROUP}"
        raise DecodeError(f"args for plugin {entry.name} were not of type {wanted}, got {got}")
    assert isinstance(args, PluginArguments)
    if identity.version != INTERNAL_VERSION:
        args = args.with_defaults(feature_gates)
    return replace(entry, args=args), remarks
