"""Arguments of the Python library: converts those that have several forms, and refuses mistakes with a suggestion."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from bayplan.answers.changes import CHANGES, Change, missing_change
from bayplan.answers.prices import check_prices, price_in
from bayplan.answers.what_if import Reschedule
from bayplan.app.custom_plugins import MAX_WEIGHT, CustomPlugin
from bayplan.app.option_values import converted
from bayplan.app.question_clusters import CONFIGURATION_CHANGES, is_configuration_change, read_change
from bayplan.base.errors import InputError
from bayplan.formats.amounts import check_amounts
from bayplan.formats.fixed_values import check_values
from bayplan.framework.plugin import Plugin
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node


def listed_objects(objects: object) -> list[Any]:
    """Return the objects as a list.

    Raises:
        InputError: the argument is a path, one manifest, or anything else that is not a list of objects.
    """
    if isinstance(objects, str):
        raise InputError(
            "Cluster(objects)", got=repr(objects), wanted="a list of objects", hint=f"Cluster.open({objects!r})"
        )
    kind = type(objects).__name__
    if isinstance(objects, Mapping):
        hint = "its items: Cluster(manifest['items'])" if "items" in objects else "[manifest], a list of manifests"
        raise InputError("Cluster(objects)", got=f"one {kind}", wanted="a list of objects", hint=hint)
    if not isinstance(objects, Iterable):
        raise InputError("objects", got=f"a {kind}", wanted="a list", hint=f"[{kind.lower()}]")
    return list(objects)


def typed_object(item: object, where: str) -> KubernetesObject:
    """Return an object itself, or the object of a manifest, with defaults.

    Raises:
        InputError: the argument is a builder, a string, an invalid manifest, or anything but an API object.
    """
    if isinstance(item, KubernetesObject):
        return _named(item, where)
    if isinstance(item, Mapping):
        found = default_object(decode(item, where=where))
        check_values(item, lambda path: where)
        check_amounts(item, where)
        return _named(found, where)
    name = type(item).__name__
    if callable(getattr(item, "obj", None)):
        raise InputError(where, got=f"a {name}", wanted="an object", hint="to call .obj() last")
    hint = "*objects, if it is a list of objects" if isinstance(item, list | tuple) else "make_pod(...).obj()"
    raise InputError(where, got=f"{name} {item!r:.60}", wanted="a node, a pod or another object", hint=hint)


def _named(item: KubernetesObject, where: str) -> KubernetesObject:
    """Return an object that has a name; others would replace each other.

    Raises:
        InputError: the object has no name.
    """
    if not item.metadata.name:
        prefix = item.metadata.generate_name
        got = f"generateName {prefix!r}, for which only an API server or `Cluster.load` generates a name"
        hint = f"{prefix}1" if prefix else ""
        what = f"{type(item).__name__} $.metadata.name"
        raise InputError(what, where=where, wanted="a name", got=got if prefix else "none", hint=hint)
    return item


def checked_target(target: object) -> str:
    """Return the name of a pod or workload.

    Raises:
        InputError: it is not a text.
    """
    if not isinstance(target, str):
        name = getattr(target, "pod", None)
        hint = repr(name) if isinstance(name, str) else "'default/web-1'"
        raise InputError("pod", got=f"{target!r:.60}", wanted="the name of a pod or workload", hint=hint)
    return target


def checked_mix(mix: object) -> str:
    """Return the text of a mix of workloads.

    Raises:
        InputError: it is not a text.
    """
    if not isinstance(mix, str):
        wanted = "a workload or pod of the cluster, or a mix"
        raise InputError("capacity", got=f"{mix!r:.60}", wanted=wanted, hint="'deployment/web' or 'web=3,db=1'")
    return mix


def checked_seeds(seeds: object) -> list[int]:
    """Return a list of seeds.

    Raises:
        InputError: the argument is not a list of integers.
    """
    if isinstance(seeds, int):
        raise InputError("seeds", got=repr(seeds), wanted="a list of seeds", hint=f"range({seeds})")
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise InputError("seeds", got=f"{seeds!r:.60}", wanted="a list of seeds", hint="range(5)")
    return [converted(each, int, where="seeds", name="seeds") for each in seeds]


def checked_shapes(shapes: object) -> list[Node]:
    """Return the nodes that describe shapes.

    Raises:
        InputError: the argument is not a list of nodes.
    """
    hint = "[make_node('large').capacity(cpu='8', memory='32Gi').obj()]"
    if isinstance(shapes, str) or not isinstance(shapes, Iterable):
        raise InputError("shapes", got=f"{shapes!r:.60}", wanted="a list of nodes", hint=hint)
    found = []
    for each in shapes:
        if not isinstance(each, Node):
            raise InputError("shapes", got=f"{each!r:.60}", wanted="nodes", hint=hint)
        found.append(each)
    return found


def checked_gates(gates: object) -> dict[str, bool]:
    """Return the values of feature gates.

    Raises:
        InputError: the argument is no mapping, or a value is not a bool; the text "false" would turn a gate on.
    """
    if not isinstance(gates, Mapping):
        wanted, hint = "a dict of names and bools", "{'DynamicResourceAllocation': False}"
        raise InputError("feature_gates", got=f"{gates!r:.60}", wanted=wanted, hint=hint)
    found = {}
    for name, value in gates.items():
        if not isinstance(value, bool):
            raise InputError(f"feature_gates {name}", got=repr(value), wanted="True or False")
        found[name] = value
    return found


def weighted_plugins(plugins: object) -> list[CustomPlugin]:
    """Return plugins with their weights: classes have weight 1, a dict has a weight for each class.

    Raises:
        InputError: the argument is neither a list nor a dict of classes, or a weight is invalid.
    """
    if isinstance(plugins, str) or not isinstance(plugins, Collection):
        name = getattr(plugins, "__name__", repr(plugins))
        raise InputError("plugins", got=f"{plugins!r:.60}", wanted="a list of classes", hint=f"[{name}]")
    for each in plugins:
        if not (isinstance(each, type) and issubclass(each, Plugin)):
            raise InputError("plugins", got=f"{each!r:.60}", wanted="classes of plugins", hint=_meant_plugin(each))
    if not isinstance(plugins, Mapping):
        return [CustomPlugin(each, 1, "") for each in plugins]
    for each, weight in plugins.items():
        if not isinstance(weight, int) or isinstance(weight, bool) or not 1 <= weight <= MAX_WEIGHT:
            wanted = f"a whole number from 1 to {MAX_WEIGHT}"
            raise InputError(f"plugins: weight of {each.__name__}", got=f"{weight!r:.60}", wanted=wanted)
    return [CustomPlugin(each, weight, "") for each, weight in plugins.items()]


def _meant_plugin(item: object) -> str:
    """Return a hint on the argument that was probably meant instead of an item that is no class of a plugin."""
    if isinstance(item, type):
        return f"class {item.__name__}(PerNodePlugin): ..."
    if isinstance(item, str) and ":" in item:
        return f"Cluster.open(..., plugins=[{item!r}])"
    match item:
        case (type() as plugin, int(weight)):
            return f"a dict: {{{plugin.__name__}: {weight}}}"
    name = item if isinstance(item, str) and item.isidentifier() else "MyPlugin"
    return f"the class itself: [{type(item).__name__ if isinstance(item, Plugin) else name}]"


def reject_configuration_path(configuration: object) -> None:
    """Raise if a path is given instead of a configuration.

    Raises:
        InputError: the argument is the name of a file.
    """
    is_path = isinstance(configuration, os.PathLike)
    text = os.fspath(configuration) if isinstance(configuration, str | os.PathLike) else ""
    if is_path or (isinstance(text, str) and "\n" not in text and text.endswith((".yaml", ".yml", ".json"))):
        wanted, hint = "a configuration, as text or dict", f"Path({text!r}).read_text()"
        raise InputError("configuration", got=repr(configuration), wanted=wanted, hint=hint)


def split_changes(changes: Sequence[str], configuration: Sequence[str]) -> tuple[list[Change], list[str]]:
    """Return the changes of the cluster, and those of the scheduler, which may be among the former.

    Raises:
        InputError: there is no change, or a change is invalid.
    """
    if isinstance(configuration, str):
        raise InputError("configuration", got=repr(configuration), wanted="a list", hint=f"[{configuration!r}]")
    for each in (*changes, *configuration):
        if not isinstance(each, str):
            raise InputError("change", got=f"{each!r:.60}", wanted="a text", hint="'cordon=NODE'")
    for each in configuration:
        if not is_configuration_change(each):
            wanted = f"changes of the scheduler: {', '.join(f'{kind}=...' for kind in CONFIGURATION_CHANGES)}"
            raise InputError("configuration", got=repr(each), wanted=wanted, hint=f"what_if({each!r}, ...)")
    of_scheduler = [*configuration, *filter(is_configuration_change, changes)]
    of_cluster = [read_change(each) for each in changes if not is_configuration_change(each)]
    if not of_cluster and not of_scheduler:
        raise missing_change((*CHANGES, *CONFIGURATION_CHANGES))
    return of_cluster, of_scheduler


def rescheduled(reschedule: str | Iterable[str]) -> tuple[Reschedule, Sequence[str]]:
    """Return which pods to reschedule, and the names of pods and workloads if only these.

    Raises:
        InputError: a text is neither `new` nor `all`.
    """
    wanted = "'new', 'all' or a list of workloads"
    if not isinstance(reschedule, str):
        these = tuple(reschedule) if isinstance(reschedule, Iterable) else reschedule
        return Reschedule.THESE, tuple(converted(these, Sequence[str], where="reschedule", name="reschedule"))
    if reschedule not in (Reschedule.NEW, Reschedule.ALL):
        hint = f"[{reschedule!r}]"
        raise InputError("reschedule", got=repr(reschedule), wanted=wanted, hint=hint)
    return Reschedule(reschedule), ()


def prices_by_node(prices: Mapping[str, float] | None, nodes: Sequence[Node]) -> dict[str, float] | None:
    """Return prices by node, given those of nodes, instance types and pools; None if none are given.

    Raises:
        InputError: a name is none of the cluster, or a price is not a number of at least 0.
    """
    if prices is None:
        return None
    if not isinstance(prices, Mapping):
        raise InputError("prices", got=f"{prices!r:.60}", wanted="a dict of names and prices", hint="{'m5.large': 0.1}")
    check_prices(prices, nodes, what="prices")
    given: Mapping[str, object] = prices
    for name, price in given.items():
        if not isinstance(price, Real) or not 0 <= float(price) < 1e12:
            raise InputError(f"price of {name}", got=repr(price), wanted="a number of at least 0")
    plain = {name: float(price) for name, price in prices.items()}
    known = {node.metadata.name: price_in(plain, node) for node in nodes}
    return {name: price for name, price in known.items() if price is not None}
