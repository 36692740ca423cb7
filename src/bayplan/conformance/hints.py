"""Answer hint cases: the cluster events that plugins register, and the results of their queueing hints for one change.

The format is described in `conformance/QUEUE_CONFIG_HINTS.md` (section 2). The plugins are called directly: the
scheduler's additions to their registrations (`bayplan.framework.events.registrations`) are left out here, as in the
recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from bayplan.base.errors import InputError
from bayplan.conformance.cases import Json, JsonObject
from bayplan.engine.assemble import assemble_scheduler, request_gates
from bayplan.framework.configuration.loading import default_configuration, load_configuration
from bayplan.framework.events import (
    ACTION_BY_TEXT,
    ActionType,
    ClusterEvent,
    HintAnswer,
    ObjectChange,
    QueueingHint,
    object_changes,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import REJECTING_POINTS, Plugin
from bayplan.objects import kinds
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry

PROFILE = "default-scheduler"

KEPT_PROFILES = 16
"""Number of combinations of cluster, configuration and gates with cached plugins.

Cases that share one are consecutive.
"""


class _Case(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    list: bool = False
    plugin: str = ""
    pod: dict[str, object] | None = None
    old: dict[str, object] | None = None
    new: dict[str, object] | None = None
    event: dict[str, object] | None = None
    cluster: Sequence[dict[str, object]] = ()
    config: dict[str, object] | None = None
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)


def answer_hint_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a hint case, in the recorded format.

    Raises:
        InputError: the case is malformed, or names a plugin that is not in the profile.
    """
    try:
        asked = msgspec.convert(case, _Case)
    except msgspec.ValidationError as problem:
        raise InputError("hint case", wanted="the recorded format", got=str(problem)) from None
    gates = FeatureGates.from_mapping(asked.feature_gates)
    setting = {"cluster": asked.cluster, "config": asked.config, "gates": asked.feature_gates}
    plugins = _plugins_in(msgspec.json.encode(setting, order="deterministic"))
    if asked.list:
        return {
            "id": asked.id,
            "error": None,
            "plugins": {
                name: [_recorded(event, hint) for event, hint in plugin.events_to_register()]
                for name, plugin in sorted(plugins.items())
                if plugin.events_to_register() or not REJECTING_POINTS.isdisjoint(plugin.extension_points())
            },
        }
    if asked.plugin not in plugins:
        raise InputError("hint case", got=asked.plugin, wanted="a plugin of the profile that registers events")
    registered = plugins[asked.plugin].events_to_register()
    pod = _decode(asked.pod)
    assert isinstance(pod, Pod)
    return {
        "id": asked.id,
        "error": None,
        "events": [_run_hints(registered, pod, change) for change in _changes(asked, gates)],
    }


@lru_cache(maxsize=KEPT_PROFILES)
def _plugins_in(setting: bytes) -> Mapping[str, Plugin[object]]:
    """Return the plugins of the default profile in a cluster, by name.

    Cases can share them, because hints change nothing.
    """
    found = msgspec.json.decode(setting)
    gates = FeatureGates.from_mapping(found["gates"])
    configuration = default_configuration(gates)
    if found["config"] is not None:
        configuration = load_configuration(found["config"], feature_gates=gates)
    scheduler = assemble_scheduler(configuration, in_tree_registry(), feature_gates=gates)
    for document in found["cluster"]:
        scheduler.handle(None, kinds.decode(document), 0)
    return scheduler.profiles[PROFILE].plugins


def _changes(asked: _Case, gates: FeatureGates) -> list[ObjectChange]:
    """Return the events of a case: its named event, or those that the event handlers derive from the change."""
    old, new = _decode(asked.old), _decode(asked.new)
    if asked.event is not None:
        return [ObjectChange(_event(asked.event), old, new)]
    return object_changes(
        old,
        new,
        declared_features=gates.enabled("NodeDeclaredFeatures"),
        gang_scheduling=gates.enabled("GangScheduling"),
        gates=request_gates(gates),
    )


def _run_hints(
    registered: Sequence[tuple[ClusterEvent, QueueingHint | None]], pod: Pod, change: ObjectChange
) -> JsonObject:
    """Run all hints that are registered for an event. An error counts as Queue, and one Queue is enough."""
    matching = sorted(
        ((event, hint) for event, hint in registered if event.matches(change.event)), key=lambda each: each[0].resource
    )
    hints: list[JsonObject] = []
    for event, hint in matching:
        found = HintAnswer.QUEUE if hint is None else hint(pod, change.old, change.new)
        error = f"{event.resource}: unexpected objects" if found is HintAnswer.ERROR else None
        hints.append({"registered": _recorded(event, hint), "answer": "Queue" if found else "Skip", "error": error})
    answers = [hint["answer"] for hint in hints]
    answer: JsonObject = {
        "event": {"resource": str(change.event.resource), "actions": _actions(change.event.actions)},
        "hints": list[Json](hints),
        "answer": "NotRegistered" if not answers else "Queue" if "Queue" in answers else "Skip",
    }
    if change.max_priority is not None:
        answer["maxPriority"] = change.max_priority
    return answer


def _recorded(event: ClusterEvent, hint: QueueingHint | None) -> JsonObject:
    recorded: JsonObject = {
        "resource": str(event.resource),
        "actions": _actions(event.actions),
        "function": hint is not None,
    }
    if event.custom_label:
        recorded["label"] = event.custom_label
    return recorded


def _actions(actions: ActionType) -> list[Json]:
    """Return the names of actions. All actions together, and all updates together, have a name."""
    if actions == ActionType.ALL:
        return ["All"]
    if actions & ActionType.UPDATE == ActionType.UPDATE:
        return [*(actions & ~ActionType.UPDATE).texts, "Update"]
    return list[Json](actions.texts)


def _event(document: Mapping[str, object]) -> ClusterEvent:
    given = msgspec.convert(document, type=dict[str, str | list[str]])
    actions = ActionType(0)
    for name in given["actions"]:
        actions |= ACTION_BY_TEXT[name]
    return ClusterEvent(str(given["resource"]), actions)


def _decode(document: dict[str, object] | None) -> KubernetesObject | None:
    """Return an object as the recording program passes it: pods get namespace, uid and scheduler name, nothing else."""
    if document is None:
        return None
    item = kinds.decode(document)
    if not isinstance(item, Pod):
        return item
    replace, metadata, spec = msgspec.structs.replace, item.metadata, item.spec
    return replace(
        item,
        metadata=replace(
            metadata, namespace=metadata.namespace or "default", uid=metadata.uid or f"uid-{metadata.name}"
        ),
        spec=replace(spec, scheduler_name=spec.scheduler_name or PROFILE),
    )
