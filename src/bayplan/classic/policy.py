"""Policy files: the configuration of the scheduler before KubeSchedulerConfiguration, as decoded by Kubernetes 1.16.

This module decodes Policies, and checks what upstream checks before it creates a scheduler; `algorithms` lists the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from bayplan.base.errors import ConfigurationError
from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.quoting import GoTextError, quote
from bayplan.formats.json_tree import plain_value
from bayplan.formats.yaml_nodes import read_yaml
from bayplan.formats.yaml_tree import GoYamlError
from bayplan.framework.configuration.document import Extender, ExtenderManagedResource, ExtenderTLSConfig
from bayplan.objects.names import check_qualified_name
from bayplan.objects.resource_names import is_extended
from bayplan.objects.selectors import join_errors

MAX_WEIGHT = (2**63 - 1) // 10
MAX_INT32 = 2**31 - 1

HEADER = "a file with apiVersion: v1 and kind: Policy"

_WANTED: Mapping[type, str] = {str: "a string", bool: "true or false", int: "an integer", list: "a list"}


class LabelsPresence(msgspec.Struct, frozen=True):
    """Argument of CheckNodeLabelPresence: the labels that a node must have, or with `presence` False, must lack."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class LabelPreference(msgspec.Struct, frozen=True):
    """Argument of a label priority: the label that a node should have, or with `presence` False, should lack."""

    label: str = ""
    presence: bool = False


class RatioArguments(msgspec.Struct, frozen=True):
    """Argument of RequestedToCapacityRatio: points (utilization, score), and weights by resource.

    Without resources, CPU and memory count.
    """

    shape: tuple[tuple[int, int], ...] = ()
    resources: tuple[tuple[str, int], ...] = ()


class PolicyArgument(msgspec.Struct, frozen=True):
    """The argument of a predicate or priority in a Policy; at most one of the fields is set.

    Attributes:
        service_affinity: the node labels whose values must be the same for all pods of a service.
        service_anti_affinity: the node label over whose values the pods of a service are spread.
        labels_presence, label_preference, requested_to_capacity_ratio: see the classes.
    """

    service_affinity: tuple[str, ...] | None = None
    labels_presence: LabelsPresence | None = None
    service_anti_affinity: str | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio: RatioArguments | None = None

    @property
    def count(self) -> int:
        """Return the number of set fields."""
        return sum(getattr(self, name) is not None for name in self.__struct_fields__)


class PolicyRule(msgspec.Struct, frozen=True):
    """A predicate, or a priority with its weight. `argument` is None if it has none."""

    name: str
    weight: int = 0
    argument: PolicyArgument | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """A Policy, without defaults.

    Attributes:
        predicates, priorities: the algorithms; None for those of the default provider.
        extenders: the extenders in the order of the file.
        hard_pod_affinity_symmetric_weight: the weight; 0 if it is not set.
        always_check_all_predicates: whether all predicates run on a node, not just up to the first that fails.
        where: the file, for later error messages; not part of the Policy.
    """

    predicates: tuple[PolicyRule, ...] | None = None
    priorities: tuple[PolicyRule, ...] | None = None
    extenders: tuple[Extender, ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False
    where: str = field(default="", compare=False)


def load_policy(text: bytes, *, where: str = "") -> Policy:
    """Read a Policy file, YAML or JSON.

    Raises:
        ConfigurationError: the file can't be parsed, or is not a valid Policy.
    """
    try:
        value = plain_value(read_yaml(text)[0])
    except GoYamlError as problem:
        raise ConfigurationError(f"invalid policy: {problem}", where=where) from None
    if not isinstance(value, dict):
        raise ConfigurationError(
            "invalid policy: couldn't get version/kind; json parse error", where=where, hint=HEADER
        )
    return policy_from_mapping(value, where=where)


def policy_from_mapping(document: Mapping[str, object], *, where: str = "") -> Policy:
    """Return the Policy in a decoded document. As upstream, unknown fields are ignored."""
    version, kind = document.get("apiVersion") or "", document.get("kind") or ""
    if (version, kind) != ("v1", "Policy"):
        raise ConfigurationError(f"invalid policy: {_unknown_kind(str(version), str(kind))}", where=where, hint=HEADER)
    reader = _Reader(where)
    predicates = reader.rules(document, "predicates")
    priorities = reader.rules(document, "priorities")
    policy = Policy(
        predicates,
        priorities,
        tuple(reader.extender(item) for item in reader.mappings(document, "extenders", "v1.Policy")),
        reader.integer(document, "hardPodAffinitySymmetricWeight", "v1.Policy", largest=MAX_INT32),
        reader.boolean(document, "alwaysCheckAllPredicates", "v1.Policy"),
        where,
    )
    problems = _problems(policy)
    if problems:
        raise ConfigurationError(f"couldn't create scheduler from policy: {join_errors(problems)}", where=where)
    return policy


def _unknown_kind(version: str, kind: str) -> str:
    if not kind:
        return "Object 'Kind' is missing"
    return f'no kind "{kind}" is registered for version "{version}"'


def _problems(policy: Policy) -> list[str]:
    """Return the errors of upstream's ValidatePolicy."""
    found = [
        f"Priority {rule.name} should have a positive weight applied to it or it has overflown"
        for rule in policy.priorities or ()
        if not 0 < rule.weight < MAX_WEIGHT
    ]
    managed: dict[str, None] = {}
    for extender in policy.extenders:
        if extender.prioritize_verb and extender.weight <= 0:
            found.append(f"Priority for extender {extender.url_prefix} should have a positive weight applied to it")
        for resource in extender.managed_resources:
            complaints = check_qualified_name(resource.name)
            if not complaints and not is_extended(resource.name):
                complaints = (f"{resource.name} is an invalid extended resource name",)
            found += complaints
            if resource.name in managed:
                found.append(f"Duplicate extender managed resource name {resource.name}")
            managed[resource.name] = None
    binders = sum(bool(extender.bind_verb) for extender in policy.extenders)
    if binders > 1:
        found.append(f"Only one extender can implement bind, found {binders}")
    return found


V = TypeVar("V")


class _Reader:
    """Reads values of the expected types from decoded JSON; null is treated as absent."""

    def __init__(self, where: str) -> None:
        self._where = where

    def rules(self, document: Mapping[str, object], name: str) -> tuple[PolicyRule, ...] | None:
        if document.get(name) is None:
            return None
        return tuple(self.rule(item) for item in self.mappings(document, name, "v1.Policy"))

    def rule(self, item: Mapping[str, object]) -> PolicyRule:
        path = "v1.PolicyRule"
        argument = self.mapping(item, "argument", path)
        name = self.text(item, "name", path)
        return PolicyRule(
            name, self.integer(item, "weight", path), None if argument is None else self.argument(argument)
        )

    def argument(self, item: Mapping[str, object]) -> PolicyArgument:
        path = "v1.PolicyArgument"
        affinity = self.mapping(item, "serviceAffinity", path)
        presence = self.mapping(item, "labelsPresence", path)
        anti = self.mapping(item, "serviceAntiAffinity", path)
        preference = self.mapping(item, "labelPreference", path)
        ratio = self.mapping(item, "requestedToCapacityRatioArguments", path)
        return PolicyArgument(
            None if affinity is None else self.texts(affinity, "labels", path),
            None
            if presence is None
            else LabelsPresence(self.texts(presence, "labels", path), self.boolean(presence, "presence", path)),
            None if anti is None else self.text(anti, "label", path),
            None
            if preference is None
            else LabelPreference(self.text(preference, "label", path), self.boolean(preference, "presence", path)),
            None if ratio is None else self.ratio(ratio),
        )

    def ratio(self, item: Mapping[str, object]) -> RatioArguments:
        path = "v1.RequestedToCapacityRatioArguments"
        points = self.mappings(item, "shape", path)
        resources = self.mappings(item, "resources", path)
        return RatioArguments(
            tuple((self.integer(point, "utilization", path), self.integer(point, "score", path)) for point in points),
            tuple((self.text(entry, "name", path), self.integer(entry, "weight", path)) for entry in resources),
        )

    def extender(self, item: Mapping[str, object]) -> Extender:
        path = "v1.ExtenderConfig"
        tls = self.mapping(item, "tlsConfig", path)
        return Extender(
            url_prefix=self.text(item, "urlPrefix", path),
            filter_verb=self.text(item, "filterVerb", path),
            preempt_verb=self.text(item, "preemptVerb", path),
            prioritize_verb=self.text(item, "prioritizeVerb", path),
            weight=self.integer(item, "weight", path),
            bind_verb=self.text(item, "bindVerb", path),
            enable_https=self.boolean(item, "enableHttps", path),
            tls_config=None if tls is None else self.tls(tls),
            http_timeout_ns=self.integer(item, "httpTimeout", path),
            node_cache_capable=self.boolean(item, "nodeCacheCapable", path),
            managed_resources=tuple(
                ExtenderManagedResource(self.text(each, "name", path), self.boolean(each, "ignoredByScheduler", path))
                for each in self.mappings(item, "managedResources", path)
            ),
            ignorable=self.boolean(item, "ignorable", path),
        )

    def tls(self, item: Mapping[str, object]) -> ExtenderTLSConfig:
        path = "v1.ExtenderTLSConfig"
        insecure = self.boolean(item, "insecure", path)
        try:
            data = {key: decode_base64(self.text(item, key, path)) for key in ("certData", "keyData", "caData")}
        except GoTextError as problem:
            raise ConfigurationError(f"invalid policy: {path}: {problem}", where=self._where) from None
        return ExtenderTLSConfig(
            insecure,
            self.text(item, "serverName", path),
            self.text(item, "certFile", path),
            self.text(item, "keyFile", path),
            self.text(item, "caFile", path),
            data["certData"],
            data["keyData"],
            data["caData"],
        )

    # Single values.

    def text(self, item: Mapping[str, object], key: str, path: str) -> str:
        return self._value(item, key, path, str, "")

    def boolean(self, item: Mapping[str, object], key: str, path: str) -> bool:
        return self._value(item, key, path, bool, False)

    def integer(self, item: Mapping[str, object], key: str, path: str, *, largest: int = 2**63 - 1) -> int:
        found = self._value(item, key, path, int, 0)
        if isinstance(found, bool) or not -largest - 1 <= found <= largest:
            raise self._error(path, key, "an integer", found)
        return found

    def texts(self, item: Mapping[str, object], key: str, path: str) -> tuple[str, ...]:
        found: Sequence[object] = self._value(item, key, path, list, [])
        for each in found:
            if not isinstance(each, str):
                raise self._error(path, key, "a list of strings", each)
        return tuple(str(each) for each in found)

    def mapping(self, item: Mapping[str, object], key: str, path: str) -> Mapping[str, object] | None:
        found = item.get(key)
        if found is None or isinstance(found, dict):
            return found
        raise self._error(path, key, "an object", found)

    def mappings(self, item: Mapping[str, object], key: str, path: str) -> list[Mapping[str, object]]:
        found: list[object] = self._value(item, key, path, list, [])
        mappings: list[Mapping[str, object]] = []
        for each in found:
            if not isinstance(each, dict):
                raise self._error(path, key, "a list of objects", each)
            mappings.append(each)
        return mappings

    def _value(self, item: Mapping[str, object], key: str, path: str, kind: type[V], absent: V) -> V:
        found = item.get(key)
        if found is None:
            return absent
        if not isinstance(found, kind):
            raise self._error(path, key, _WANTED[kind], found)
        return found

    def _error(self, path: str, key: str, wanted: str, got: object) -> ConfigurationError:
        shown = quote(got) if isinstance(got, str) else repr(got)
        return ConfigurationError(f"invalid policy: {path}.{key}", where=self._where, wanted=wanted, got=shown)
