"""Configurations of older releases are converted to v1: settings with a counterpart are kept, the others are listed."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from bayplan.base.errors import ConfigurationError
from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.convert import convert_text
from bayplan.framework.configuration.extension_points import ExtensionPoint
from bayplan.framework.configuration.loading import examine_configuration, load_configuration
from tests.shared import shared_path

OLD_WEIGHTS = [{"name": name, "weight": 1} for name in ("InterPodAffinity", "NodeAffinity", "TaintToleration")]
BOTH = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def old(version: str, **fields: Any) -> str:
    header = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration"}
    return yaml.safe_dump({**header, **fields})


def profile_of(version: str, **profile: Any) -> dict[str, JsonValue]:
    """Return the converted profile."""
    profiles = convert_text(old(version, profiles=[profile])).document["profiles"]
    assert isinstance(profiles, list)
    [found] = profiles
    assert isinstance(found, dict)
    return found


def scores(document: dict[str, JsonValue]) -> dict[str, int]:
    """Return the score plugins that a v1 document stands for, with their weights."""
    found = examine_configuration(document)
    assert found.configuration is not None, found.error
    [profile] = found.configuration.profiles
    return {entry.name: entry.weight for entry in profile.plugins[ExtensionPoint.SCORE]}


@pytest.mark.parametrize(
    ("version", "profile", "want"),
    [
        pytest.param("v1beta3", {"schedulerName": "a"}, {"schedulerName": "a"}, id="v1beta3 needs no change"),
        pytest.param(
            "v1beta2",
            {"schedulerName": "a"},
            {"schedulerName": "a", "plugins": {"score": {"enabled": OLD_WEIGHTS}}},
            id="before it three default weights were others",
        ),
        pytest.param(
            "v1beta2",
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 5}], "disabled": [{"name": "*"}]}}},
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 5}], "disabled": [{"name": "*"}]}}},
            id="explicit weights are unchanged",
        ),
        pytest.param(
            "v1beta1",
            {
                "plugins": {
                    "score": {
                        "enabled": [{"name": "NodeResourcesMostAllocated", "weight": 5}],
                        "disabled": [{"name": "*"}],
                    }
                },
                "pluginConfig": [
                    {"name": "NodeResourcesMostAllocated", "args": {"resources": [{"name": "cpu", "weight": 3}]}}
                ],
            },
            {
                "plugins": {
                    "score": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}], "disabled": [{"name": "*"}]}
                },
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}
                        },
                    }
                ],
            },
            id="a score plugin that is a strategy today",
        ),
        pytest.param(
            "v1beta3",
            {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}, {"name": "Own"}]}}},
            {"plugins": {"filter": {"enabled": [{"name": "Own"}]}}},
            id="a plugin whose work another does",
        ),
        pytest.param(
            "v1beta3",
            {
                "plugins": {"filter": {"enabled": [{"name": "NodeLabel"}]}},
                "pluginConfig": [
                    {"name": "NodeLabel", "args": {"presentLabels": ["a"], "absentLabelsPreference": ["b"]}}
                ],
            },
            {
                "pluginConfig": [
                    {
                        "name": "NodeAffinity",
                        "args": {
                            "addedAffinity": {
                                "requiredDuringSchedulingIgnoredDuringExecution": {
                                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                                },
                                "preferredDuringSchedulingIgnoredDuringExecution": [
                                    {
                                        "weight": 1,
                                        "preference": {"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]},
                                    }
                                ],
                            }
                        },
                    }
                ]
            },
            id="labels of nodes as an affinity for all pods",
        ),
        pytest.param(
            "v1beta3",
            {
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
                            "kind": "PodTopologySpreadArgs",
                            "defaultConstraints": [{"maxSkew": 1}],
                        },
                    },
                    {"name": "Own", "args": {"apiVersion": "own/v1", "x": 1}},
                ]
            },
            {
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {"defaultConstraints": [{"maxSkew": 1}], "defaultingType": "List"},
                    },
                    {"name": "Own", "args": {"apiVersion": "own/v1", "x": 1}},
                ]
            },
            id="arguments lose their version, those of others keep it",
        ),
    ],
)
def test_profiles_of_older_versions_are_converted(version: str, profile: dict[str, Any], want: dict[str, Any]) -> None:
    assert profile_of(version, **profile) == want


def test_default_scores_keep_the_weights_of_their_version() -> None:
    today = scores(convert_text(old("v1beta3", profiles=[{}])).document)
    then = scores(convert_text(old("v1beta2", profiles=[{}])).document)
    changed = {name: (then[name], today[name]) for name in today if then[name] != today[name]}
    assert changed == {"InterPodAffinity": (1, 2), "NodeAffinity": (1, 2), "TaintToleration": (1, 3)}


@pytest.mark.parametrize(
    ("disabled", "strategy"),
    [
        pytest.param([{"name": "NodeResourcesLeastAllocated"}], None, id="least allocated was taken out"),
        pytest.param([], "NodeResourcesLeastAllocated", id="a configuration that names it"),
    ],
)
def test_node_resources_fit_scores_only_if_least_allocated_was_enabled(
    disabled: list[Any], strategy: str | None
) -> None:
    enabled = [{"name": strategy, "weight": 1}] if strategy else []
    profile = {"plugins": {"score": {"enabled": enabled, "disabled": disabled}}}
    found = scores(convert_text(old("v1beta1", profiles=[profile])).document)
    assert ("NodeResourcesFit" in found) == (strategy is not None)


def test_top_level_settings_are_converted_to_plugin_arguments_and_profiles() -> None:
    text = old(
        "v1alpha1",
        schedulerName="mine",
        hardPodAffinitySymmetricWeight=7,
        bindTimeoutSeconds=30,
        disablePreemption=True,
        healthzBindAddress="0.0.0.0:10251",
        percentageOfNodesToScore=50,
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
        leaderElection={"leaderElect": False, "lockObjectName": "l", "resourceLock": "endpoints"},
        plugins={"postFilter": {"enabled": [{"name": "Own"}]}},
    )
    found = convert_text(text)
    document: Any = found.document
    [profile] = document["profiles"]
    assert document["percentageOfNodesToScore"] == 50
    assert document["leaderElection"] == {"leaderElect": False, "resourceName": "l", "resourceLock": "leases"}
    assert profile["schedulerName"] == "mine"
    assert profile["pluginConfig"] == [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
        {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 30}},
        {
            "name": "NodeResourcesFit",
            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": BOTH}},
        },
    ]
    # The former PostFilter is now called PreScore; today's PostFilter is the extension point of preemption.
    assert profile["plugins"]["postFilter"] == {"disabled": [{"name": "DefaultPreemption"}]}
    assert {path for path, _ in found.notes} >= {
        "$.healthzBindAddress",
        "$.leaderElection.resourceLock",
        "$.hardPodAffinitySymmetricWeight",
        "$.disablePreemption",
        "$.algorithmSource.provider",
    }


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "GeneralPredicates"},
        {"name": "NoDiskConflict"},
        {"name": "Racks", "argument": {"labelsPresence": {"labels": ["rack"], "presence": True}}},
        {"name": "Old", "argument": {"labelsPresence": {"labels": ["retiring"], "presence": False}}},
        {"name": "Together", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
        {"name": "Unheard"},
    ],
    "priorities": [
        {"name": "MostRequestedPriority", "weight": 2},
        {"name": "LeastRequestedPriority", "weight": 1},
        {"name": "NodeAffinityPriority", "weight": 4},
        {"name": "EqualPriority", "weight": 1},
        {"name": "Ssd", "weight": 3, "argument": {"labelPreference": {"label": "ssd", "presence": True}}},
    ],
    "hardPodAffinitySymmetricWeight": 10,
    "extenders": [
        {"urlPrefix": "http://127.0.0.1", "filterVerb": "filter", "httpTimeout": 30_000_000_000, "enableHttps": False}
    ],
}


def test_a_policy_is_converted_to_a_profile_with_only_its_filters_and_scores() -> None:
    found = convert_text(yaml.safe_dump(POLICY))
    examined = examine_configuration(found.document)
    assert examined.configuration is not None, examined.error
    [profile] = examined.configuration.profiles
    assert {entry.name for entry in profile.plugins[ExtensionPoint.FILTER]} == {
        "NodeUnschedulable",
        "TaintToleration",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
    }
    weights = {entry.name: entry.weight for entry in profile.plugins[ExtensionPoint.SCORE]}
    assert weights == {"NodeResourcesFit": 2, "NodeAffinity": 4}
    arguments: Any = found.document
    by_name = {each["name"]: each["args"] for each in arguments["profiles"][0]["pluginConfig"]}
    affinity = by_name["NodeAffinity"]["addedAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {
            "matchExpressions": [
                {"key": "rack", "operator": "Exists"},
                {"key": "retiring", "operator": "DoesNotExist"},
            ]
        }
    ]
    assert len(affinity["preferredDuringSchedulingIgnoredDuringExecution"]) == 1
    assert by_name["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"
    assert by_name["InterPodAffinity"] == {"hardPodAffinityWeight": 10}
    [extender] = examined.configuration.extenders
    assert extender.http_timeout_ns == 30_000_000_000
    left_out = [path for path, note in found.notes if note.startswith("left out")]
    assert left_out == [
        "$.predicates[4] Together",
        "$.predicates[5] Unheard",
        "$.priorities[1] LeastRequestedPriority",
        "$.priorities[3] EqualPriority",
    ]


def test_a_policy_without_priorities_uses_the_default_scores() -> None:
    found = convert_text('{"kind": "Policy", "predicates": [{"name": "HostName"}]}')
    assert len(scores(found.document)) > 5


def test_requested_to_capacity_ratio_keeps_its_shape() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, "resources": [{"name": "x/y", "weight": 2}]}}
    policy = {"kind": "Policy", "predicates": [], "priorities": [{"name": "R", "weight": 1, "argument": argument}]}
    arguments: Any = convert_text(yaml.safe_dump(policy)).document
    assert arguments["profiles"][0]["pluginConfig"] == [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "x/y", "weight": 2}],
                    "requestedToCapacityRatio": {"shape": shape},
                }
            },
        }
    ]


def test_a_configuration_in_a_config_map_is_converted() -> None:
    data = {"other": "x", "config.yaml": old("v1beta3", parallelism=3)}
    found = convert_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "data": data}))
    assert found.document["parallelism"] == 3
    assert found.notes[0] == ("$.data[config.yaml]", "this is what was converted")


def test_a_v1_configuration_is_unchanged() -> None:
    text = old("v1", parallelism=3)
    found = convert_text(text)
    assert found.document == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("kind: Pod\napiVersion: v1\n", "got Pod v1"),
        ("kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v9\n", "v9"),
        ("[]", "expected an object, got list"),
        ("a: [", "f "),
        ("{", "f "),
        ("kind: ConfigMap\ndata: {a: b}\n", "got none in its data"),
    ],
)
def test_a_document_of_another_kind_or_version_is_refused(text: str, want: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        convert_text(text, where="f")
    assert want in str(raised.value)


MALFORMED = {
    "v1beta1": old(
        "v1beta1",
        profiles=[
            {
                "plugins": {"score": {"enabled": [{"name": "A", "weight": 2}], "disabled": [{"name": "*"}]}},
                "pluginConfig": [
                    {"name": "NodeLabel", "args": {"presentLabels": ["a"]}},
                    {"name": "NodeResourcesMostAllocated", "args": {"resources": [{"name": "cpu", "weight": 3}]}},
                ],
            }
        ],
        leaderElection={"resourceLock": "endpoints"},
        extenders=[{"httpTimeout": 5}],
    ),
    "v1alpha1": old(
        "v1alpha1",
        plugins={"postFilter": {"enabled": [{"name": "A"}]}},
        pluginConfig=[{"name": "A", "args": {"b": 1}}],
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
        disablePreemption=True,
        hardPodAffinitySymmetricWeight=1,
    ),
    "Policy": yaml.safe_dump(POLICY),
    "v1": old("v1", profiles=[{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]),
}


def mutants(value: JsonValue) -> Iterator[JsonValue]:
    """Yield copies of a value, each with a value of another type in one place."""
    yield from ([], {}, 1, None, "x", True)
    if isinstance(value, dict):
        yield from ({**value, key: other} for key, item in value.items() for other in mutants(item))
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from ([*value[:n], other, *value[n + 1 :]] for other in mutants(item))


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_field_of_any_other_type_is_converted_or_refused(text: str) -> None:
    outcomes, unexplained = Counter[type[Exception] | None](), list[str]()
    for number, mutant in enumerate(mutants(yaml.safe_load(text))):
        source = json.dumps(mutant)
        try:
            document = convert_text(source, where="f").document
        except ConfigurationError as error:
            outcomes[type(error)] += 1
            unexplained += [str(error)] * ("expected" not in str(error))
        else:
            outcomes[None] += 1
            examine_configuration(yaml.safe_dump(document))
        if number % 10 == 0:
            with contextlib.suppress(ConfigurationError):
                load_configuration(source, where="f")
    assert unexplained == []
    assert len(outcomes) == 2, "some are accepted, some are refused"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            old("v1beta2", profiles=[{"plugins": {"score": {"disabled": [{"name": []}]}}}]),
            "f:7:9 $.profiles[0].plugins.score.disabled[0].name: expected the name of a plugin, got a list; "
            "try a name such as NodeAffinity",
            id="a list as name",
        ),
        pytest.param(
            old("v1beta2", profiles=[{"pluginConfig": [{"args": {}}]}]),
            "f:5:5 $.profiles[0].pluginConfig[0].name: expected the name of a plugin, got nothing; "
            "try a name such as NodeAffinity",
            id="no name",
        ),
        pytest.param(
            old("v1beta2", profiles=[{"plugins": {"score": {"disabled": ["*"]}}}]),
            "f:7:9 $.profiles[0].plugins.score.disabled[0]: expected an object, got '*'; try name: '*'",
            id="a name instead of an entry",
        ),
        pytest.param(
            old("v1beta2", profiles=[None]),
            "f:4:3 $.profiles[0]: expected an object, got nothing; try leaving out this element",
            id="null as a profile",
        ),
        pytest.param(
            old("v1alpha1", hardPodAffinitySymmetricWeight=True),
            "f:2:33 $.hardPodAffinitySymmetricWeight: expected an integer, got true; try 1",
            id="a boolean as number",
        ),
        pytest.param(
            "kind: Policy\npriorities: {}\n",
            "f:2:1 $.priorities: expected a list, got an object; try leaving out this field",
            id="an object as list",
        ),
        pytest.param(
            "kind: ConfigMap\ndata:\n  p: |\n    kind: Policy\n    predicates:\n    - name: 3\n",
            "f $.data[p]:3:9 $.predicates[0].name: expected the name of a predicate, got 3; "
            "try a name such as PodFitsResources",
            id="in a ConfigMap",
        ),
        pytest.param(
            '{"kind": "Policy", "predicates": ' + "[" * 900 + "]" * 900 + "}",
            "f configuration: expected objects and lists nested at most 100 levels deep, got more levels; try removing them",
            id="deeper than Python's stack",
        ),
        pytest.param(
            '{"kind": "Policy", "predicates": ' + "[" * 150 + "]" * 150 + "}",
            "f configuration: expected objects and lists nested at most 100 levels deep, got more levels; try removing them",
            id="too deep to be written",
        ),
        pytest.param(
            '{"kind": "Policy", "hardPodAffinitySymmetricWeight": ' + "9" * 5000 + "}",
            "f:1:54 $.hardPodAffinitySymmetricWeight: expected an integer, got a number out of range; try 1",
            id="more digits than Python reads",
        ),
    ],
)
def test_the_error_of_a_field_of_the_wrong_type_names_place_and_expected_type(text: str, want: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        convert_text(text, where="f")
    assert str(raised.value) == want


def test_the_hint_to_convert_does_not_depend_on_valid_fields() -> None:
    with pytest.raises(ConfigurationError, match="try bayplan config convert"):
        load_configuration(old("v1beta2", profiles=[3]), where="f")


# Real files whose version is a shell variable, that have no kind at all, or (in a design document) a `*` without `name`.
NOT_CONVERTIBLE = 6


def test_most_real_configurations_of_older_releases_load_after_conversion() -> None:
    files = [path for path in sorted(shared_path("data", "configs").rglob("*")) if path.is_file()]
    refused, unread = [], []
    for path in files:
        try:
            found = convert_text(path.read_text(encoding="utf-8"))
        except ConfigurationError:
            refused.append(path.name)
            continue
        examined = examine_configuration(found.document)
        # Third-party plugins do not exist here. Any other error is a fault of the conversion or of the file.
        if examined.stage is not None and "does not exist" not in (examined.error or ""):
            unread.append(path.name)
    assert len(files) == 52
    assert len(refused) == NOT_CONVERTIBLE
    # One design document has a field that no release had, another has an extender with the weight 0.
    assert len(unread) <= 2
