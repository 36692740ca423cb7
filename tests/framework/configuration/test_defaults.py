"""Defaults: default plugins under their gates, merging with declared ones, arguments."""

import pytest

from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.defaults import default_plugins
from bayplan.framework.configuration.document import KubeSchedulerConfiguration
from bayplan.framework.configuration.loading import declared_document
from bayplan.framework.configuration.plugin_arguments import (
    ARGUMENT_TYPES,
    PluginArguments,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from bayplan.framework.feature_gates import FeatureGates
from tests.framework.configuration.configurations import examine, examine_args


def declared(body: str, **gates: bool) -> KubeSchedulerConfiguration:
    found = examine(body, **gates)
    assert found.declared is not None, found.error
    return found.declared


def arguments(plugin: str, args: str, **gates: bool) -> PluginArguments:
    found = examine_args(plugin, args, **gates).declared
    assert found is not None
    (entry,) = [entry for entry in found.profiles[0].plugin_config if entry.name == plugin]
    assert isinstance(entry.args, PluginArguments)
    return entry.args


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        ({}, ["DefaultBinder", "NodeDeclaredFeatures"]),
        (
            {
                "NodeDeclaredFeatures": False,
                "InPlacePodLevelResourcesVerticalScaling": False,
                "RestartAllContainersOnContainerExits": False,
                "InPlacePodVerticalScalingInitContainers": False,
                "ExtendWebSocketsToKubelet": False,
            },
            ["ImageLocality", "DefaultBinder"],
        ),
        ({"GenericWorkload": True, "GangScheduling": True}, ["NodeDeclaredFeatures", "GangScheduling"]),
        (
            {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True},
            ["TopologyPlacementGenerator", "PodGroupPodsCount"],
        ),
    ],
    ids=["release", "without declared features", "gangs", "topology"],
)
def test_gates_append_default_plugins(gates: dict[str, bool], want: list[str]) -> None:
    plugins = default_plugins(FeatureGates.from_mapping(gates))
    assert [plugin.name for plugin in plugins][-2:] == want


def test_dynamic_resources_runs_directly_before_default_preemption() -> None:
    names = [plugin.name for plugin in default_plugins(FeatureGates())]
    assert names.index("DynamicResources") + 1 == names.index("DefaultPreemption")


@pytest.mark.parametrize(
    ("multi_point", "want"),
    [
        ("{disabled: [{name: PrioritySort}], enabled: [{name: PrioritySort}]}", "...,PrioritySort:0"),
        ("{enabled: [{name: NodeAffinity, weight: 9}]}", "NodeAffinity:9 in place"),
        ("{enabled: [{name: Mine, weight: 4}, {name: NodeName}]}", "...,Mine:4"),
        ("{disabled: [{name: '*'}], enabled: [{name: B}, {name: A, weight: 2}]}", "B:0,A:2"),
        ("{disabled: [{name: '*'}]}", ""),
        ("{disabled: [{name: '*'}], enabled: [{name: A}, {name: A}]}", "A:0,A:0"),
        ("{enabled: [{name: NodeName, weight: 1}, {name: NodeName, weight: 2}]}", "...,NodeName:1"),
    ],
    ids=[
        "a plugin that is off and on goes to the end",
        "an entry replaces a default where it stands",
        "new ones come last, defaults keep their place",
        "a star keeps the profile's own entries",
        "a star alone leaves nothing",
        "repeats stay, to be refused later",
        "of repeats the last one replaces the default",
    ],
)
def test_declared_plugins_are_merged_into_the_default_plugins(multi_point: str, want: str) -> None:
    plugins = declared(f"profiles:\n- plugins: {{multiPoint: {multi_point}}}\n").profiles[0].plugins
    assert plugins is not None
    got = ",".join(f"{plugin.name}:{plugin.weight}" for plugin in plugins.multi_point.enabled)
    if want.startswith("..."):
        assert got.endswith(want.removeprefix("..."))
    elif want.endswith(" in place"):
        default = ",".join(f"{plugin.name}:{plugin.weight}" for plugin in default_plugins(FeatureGates()))
        assert got == default.replace("NodeAffinity:2", want.removesuffix(" in place"))
    else:
        assert got == want


def test_missing_plugin_arguments_are_appended_after_the_declared_ones() -> None:
    body = "profiles:\n- pluginConfig:\n  - {name: VolumeBinding}\n  - {name: Mine, args: {b: 1, a: [x]}}\n"
    config = declared(body).profiles[0].plugin_config
    known = sorted(name.removesuffix("Args") for name in ARGUMENT_TYPES)
    assert [entry.name for entry in config] == [
        "VolumeBinding",
        "Mine",
        *(name for name in known if name != "VolumeBinding"),
    ]


@pytest.mark.parametrize(
    ("plugin", "args", "gates", "want"),
    [
        ("DefaultPreemption", "{}", {}, {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}),
        (
            "DefaultPreemption",
            "{minCandidateNodesAbsolute: 0}",
            {},
            {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0},
        ),
        ("InterPodAffinity", "{}", {}, {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}),
        ("NodeAffinity", "{}", {}, {}),
        ("PodTopologySpread", "{defaultingType: ''}", {}, {"defaultingType": "System"}),
        ("VolumeBinding", "{}", {}, {"bindTimeoutSeconds": 600}),
        (
            "VolumeBinding",
            "{bindTimeoutSeconds: 0}",
            {"StorageCapacityScoring": True},
            {
                "bindTimeoutSeconds": 0,
                "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            },
        ),
        ("DynamicResources", "{}", {}, {"filterTimeout": "10s", "bindingTimeout": "10m0s"}),
        (
            "DynamicResources",
            "{filterTimeout: null}",
            {"DRASchedulerFilterTimeout": False, "DRADeviceBindingConditions": False},
            {"filterTimeout": None},
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: a, weight: 0}, {name: b, weight: 5}]}}",
            {},
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "a", "weight": 1}, {"name": "b", "weight": 5}],
                }
            },
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {}}",
            {},
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}},
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: a}]}",
            {},
            {"resources": [{"name": "a", "weight": 1}]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plugin_arguments_get_defaults(
    plugin: str, args: str, gates: dict[str, bool], want: dict[str, JsonValue]
) -> None:
    found = examine_args(plugin, args, **gates).declared
    assert found is not None
    document = declared_document(found)
    profiles = document["profiles"]
    assert isinstance(profiles, list)
    assert isinstance(profiles[0], dict)
    entries = profiles[0]["pluginConfig"]
    assert isinstance(entries, list)
    assert isinstance(entries[0], dict)
    assert entries[0]["args"] == {
        "kind": f"{plugin}Args",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        **want,
    }


def test_decoded_arguments_are_typed_objects() -> None:
    assert arguments(
        "VolumeBinding", "{shape: [{utilization: 5, score: 2}]}", StorageCapacityScoring=True
    ) == VolumeBindingArgs(bind_timeout_seconds=600, shape=(UtilizationShapePoint(5, 2),))
    fit = arguments("NodeResourcesFit", "{}")
    assert repr(fit) == repr(arguments("NodeResourcesFit", "null"))
    assert getattr(fit, "strategy").resources == (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))  # noqa: B009


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("", (True, True)),
        ("enableProfiling: false", (False, False)),
        ("enableContentionProfiling: false", (True, False)),
        ("enableProfiling: false\nenableContentionProfiling: true", (False, True)),
    ],
)
def test_contention_profiling_defaults_to_on_and_requires_profiling(body: str, want: tuple[bool, bool]) -> None:
    found = declared(body)
    assert (found.enable_profiling, found.enable_contention_profiling) == want


def test_leader_election_and_client_connection_have_defaults() -> None:
    found = declared("leaderElection: {leaseDuration: 1m}\nclientConnection: {burst: 7}\n")
    assert found.leader_election.lease_duration_ns == 60_000_000_000
    assert (found.leader_election.renew_deadline_ns, found.leader_election.resource_lock) == (10_000_000_000, "leases")
    assert (found.client_connection.qps, found.client_connection.burst) == (50.0, 7)
