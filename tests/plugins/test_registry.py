"""The in-tree registry: the release's extension points and events, and the results of its hints."""

import gzip
import json
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.framework.configuration.loading import default_configuration, load_configuration
from bayplan.framework.events import ACTION_BY_TEXT, ActionType, ClusterEvent, HintAnswer
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import NormalizePlugin, Plugin
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import IN_TREE, in_tree_registry
from bayplan.state.cluster_state import ClusterState
from tests.plugins.builders import make_handle, make_plugin, make_state
from tests.shared import recording

LATER = {"sign", "placementScore"}
"""Extension points of upstream that have no counterpart: signing is how specs are keyed, placements are pod groups'."""

CLASSES = [pytest.param(kind, id=kind.name) for kind in IN_TREE]


def facts_of(kind: type[Plugin[Any]]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(recording("facts.json").read_text())["plugins"][kind.name]
    return facts


def snake_case(point: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in point)


@pytest.mark.parametrize("kind", CLASSES)
def test_extension_points_match_the_release(kind: type[Plugin[Any]]) -> None:
    facts = facts_of(kind)
    want = {snake_case(point) for point in facts["extensionPoints"] if point not in LATER}
    assert set(kind.extension_points()) == want
    if "score" in want:
        assert issubclass(kind, NormalizePlugin) is facts["normalizesScore"]


def written(actions: ActionType) -> list[str]:
    if actions & ActionType.UPDATE == ActionType.UPDATE:
        named = [action.text for action in (ActionType.ADD, ActionType.DELETE) if action & actions]
        return named + [text for text in ActionType.UPDATE.texts if text != "Update"]
    return actions.texts


@pytest.mark.parametrize("kind", CLASSES)
def test_events_match_the_release(kind: type[Plugin[Any]]) -> None:
    plugin = make_plugin(kind, make_state([]))
    found = [
        {"resource": str(event.resource), "actions": written(event.actions), "hint": hint is not None}
        for event, hint in plugin.events_to_register()
    ]
    assert found == facts_of(kind).get("events", [])


def test_registry_keys_match_plugin_names() -> None:
    registry = in_tree_registry()
    assert {name: registry.plugins[name].name for name in registry} == {kind.name: kind.name for kind in IN_TREE}


def read_object(document: dict[str, Any] | None) -> KubernetesObject | None:
    """Return an object as the recording program had it: defaulted, with a made-up uid."""
    if document is None:
        return None
    item = default_object(decode(document))
    metadata = item.metadata
    uid = metadata.uid or f"uid-{metadata.name}"
    return replace(item, metadata=replace(metadata, uid=uid))


def answers(case: dict[str, Any], event: ClusterEvent) -> list[HintAnswer]:
    """Return the answers of a case's plugin hints to an event; additions and deletions have one object."""
    gates = FeatureGates.from_mapping(case.get("featureGates") or {})
    written_config = case.get("config")
    configuration = default_configuration(gates)
    if written_config:
        configuration = load_configuration(written_config, feature_gates=gates)
    state = ClusterState()
    for document in case.get("cluster") or []:
        item = read_object(document)
        assert item is not None
        state.catalog.put(item.key, item)
    arguments = configuration.profiles[0].plugin_arguments.get(case["plugin"])
    plugin = in_tree_registry().make(case["plugin"], arguments, make_handle(state, gates))
    pod, old, new = (read_object(case.get(name)) for name in ("pod", "old", "new"))
    assert isinstance(pod, Pod)
    if event.actions == ActionType.ADD:
        old = None
    if event.actions == ActionType.DELETE:
        new = None
    return [
        HintAnswer.QUEUE if hint is None else HintAnswer(hint(pod, old, new))
        for registered, hint in plugin.events_to_register()
        if registered.matches(event)
    ]


@pytest.mark.parametrize("kind", CLASSES)
def test_hints_match_the_recorded_answers(kind: type[Plugin[Any]]) -> None:
    differences = []
    with gzip.open(recording("hints", "tables.jsonl.gz"), "rt") as lines:
        for line in lines:
            recorded = json.loads(line)
            case, want = recorded["case"], recorded["want"]
            if case.get("plugin") != kind.name or want["error"]:
                continue
            for reported in want.get("events") or []:
                actions = ActionType(0)
                for text in reported["event"]["actions"]:
                    actions |= ACTION_BY_TEXT[text]
                event = ClusterEvent(reported["event"]["resource"], actions)
                wanted = [
                    HintAnswer.ERROR if hint["error"] else HintAnswer[hint["answer"].upper()]
                    for hint in reported["hints"]
                ]
                found = answers(case, event)
                if found != wanted:
                    differences.append((case["id"], case["note"], event, wanted, found))
    assert differences == []
