"""Random configurations and feature gates."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import EXTENDED, HOSTNAME, ZONE, Draws
from fuzz.selectors import node_selector_term

API_VERSION = "kubescheduler.config.k8s.io/v1"

FILTERS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit")
SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
CROSS = (
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeBinding",
    "VolumeZone",
    "NodeVolumeLimits",
    "DefaultPreemption",
)

GATES = (
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRADeviceTaintRules",
    "DRAExtendedResource",
    "DRAListTypeAttributes",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRASchedulerFilterTimeout",
    "InPlacePodLevelResourcesVerticalScaling",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "NominatedNodeNameForExpectation",
    "OpportunisticBatching",
    "SchedulerAsyncPreemption",
    "StorageCapacityScoring",
    "TaintTolerationComparisonOperators",
    "VolumeLimitScaling",
)
"""Gates that can be switched independently, whether or not they may change a decision."""


DECLARED_FEATURES = (
    "NodeDeclaredFeatures",
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
"""NodeDeclaredFeatures, and the gates that require it."""


DEVICE_STATUS = (
    "DRAResourceClaimDeviceStatus",
    "DRADeviceBindingConditions",
    "DRAResourceClaimGranularStatusAuthorization",
)
"""DRAResourceClaimDeviceStatus, and the gates that require it."""


def random_gates(draws: Draws) -> JsonObject:
    """Return the feature gates that a case sets."""
    gates: JsonObject = {gate: draws.chance(0.5) for gate in draws.some(GATES, 3)}
    if draws.chance(0.1):
        gates |= {"MatchLabelKeysInPodTopologySpread": False, "MatchLabelKeysInPodTopologySpreadSelectorMerge": False}
    if draws.chance(0.1):
        gates |= dict.fromkeys(DECLARED_FEATURES, False)
    if draws.chance(0.05):
        gates |= dict.fromkeys(DEVICE_STATUS, False)
    if draws.chance(0.1):
        gates |= {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False}
    return gates


def random_configuration(draws: Draws) -> JsonObject:
    """Return a configuration with one or two profiles."""
    profiles: list[Json] = [_profile(draws, "default-scheduler")]
    if draws.has("odd", 0.3):
        profiles.append(_profile(draws, "other"))
    return {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": profiles}


def _profile(draws: Draws, name: str) -> JsonObject:
    profile: JsonObject = {"schedulerName": name}
    plugins: JsonObject = {}
    if draws.chance(0.3):
        off: list[Json] = [{"name": name} for name in draws.some((*FILTERS, *SCORES, *CROSS), 3, 1)]
        plugins[draws.one(("multiPoint", "filter", "score", "preFilter", "preScore"))] = {"disabled": off}
    if draws.chance(0.4):
        chosen = draws.some(SCORES, 3, 1)
        weighted: list[Json] = [{"name": name, "weight": draws.randint(1, 10)} for name in chosen]
        disabled: list[Json] = [{"name": name} for name in chosen]
        plugins["score"] = {"enabled": weighted, "disabled": disabled}
    if plugins:
        profile["plugins"] = plugins
    makers = (_fit, _balanced, _inter_pod, _spread, _added_affinity, _volume_binding, _preemption)
    settings = [make(draws) for make in makers if draws.chance(0.4)]
    if settings:
        profile["pluginConfig"] = list[Json](settings)
    return profile


def _args(plugin: str, args: JsonObject) -> JsonObject:
    return {"name": plugin, "args": {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **args}}


def _resources(draws: Draws) -> list[Json]:
    names = draws.some(("cpu", "memory", "ephemeral-storage", *EXTENDED), 4, 1)
    return [{"name": name, "weight": draws.randint(1, 5)} for name in names]


def _fit(draws: Draws) -> JsonObject:
    kind = draws.one(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy: JsonObject = {"type": kind, "resources": _resources(draws)}
    if kind == "RequestedToCapacityRatio":
        places = sorted(draws.some(range(101), 4, 1))
        strategy["requestedToCapacityRatio"] = {
            "shape": [{"utilization": place, "score": draws.randint(0, 10)} for place in places]
        }
    args: JsonObject = {"scoringStrategy": strategy}
    if draws.chance(0.3):
        args["ignoredResources"] = ["example.com/gpu"]
    if draws.chance(0.2):
        args["ignoredResourceGroups"] = ["example.com"]
    return _args("NodeResourcesFit", args)


def _balanced(draws: Draws) -> JsonObject:
    resources: list[Json] = [
        {"name": name, "weight": 1} for name in draws.some(("cpu", "memory", "ephemeral-storage", *EXTENDED), 4, 1)
    ]
    return _args("NodeResourcesBalancedAllocation", {"resources": resources})


def _inter_pod(draws: Draws) -> JsonObject:
    return _args(
        "InterPodAffinity",
        {
            "hardPodAffinityWeight": draws.one((0, 1, 50, 100)),
            "ignorePreferredTermsOfExistingPods": draws.chance(0.5),
        },
    )


def _volume_binding(draws: Draws) -> JsonObject:
    args: JsonObject = {"bindTimeoutSeconds": draws.randint(0, 900)}
    if draws.chance(0.6):
        places = sorted(draws.some(range(101), 4, 1))
        args["shape"] = [{"utilization": place, "score": draws.randint(0, 10)} for place in places]
    return _args("VolumeBinding", args)


def has_shape_of_volumes(value: Json) -> bool:
    """Return whether a configuration has a shape for scoring volumes, which is refused without its feature gate."""
    if isinstance(value, list):
        return any(map(has_shape_of_volumes, value))
    if not isinstance(value, dict):
        return False
    args = value.get("args")
    if value.get("name") == "VolumeBinding" and isinstance(args, dict):
        return "shape" in args
    return any(map(has_shape_of_volumes, value.values()))


def _preemption(draws: Draws) -> JsonObject:
    args: JsonObject = {}
    if draws.chance(0.7):
        args["minCandidateNodesPercentage"] = draws.one((0, 10, 50, 100))
    if draws.chance(0.7):
        args["minCandidateNodesAbsolute"] = draws.one((1, 2, 100))
    return _args("DefaultPreemption", args)


def _spread(draws: Draws) -> JsonObject:
    if draws.chance(0.3):
        return _args("PodTopologySpread", {"defaultingType": "System"})
    constraints: list[Json] = [
        {
            "maxSkew": draws.randint(1, 3),
            "topologyKey": key,
            "whenUnsatisfiable": draws.one(("DoNotSchedule", "ScheduleAnyway")),
        }
        for key in draws.some((HOSTNAME, ZONE, "rack"), 2)
    ]
    return _args("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": constraints})


def _added_affinity(draws: Draws) -> JsonObject:
    affinity: JsonObject = {}
    if draws.chance(0.6):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [node_selector_term(draws)]}
    if draws.chance(0.6):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draws.randint(1, 100), "preference": node_selector_term(draws)}
        ]
    return _args("NodeAffinity", {"addedAffinity": affinity})
