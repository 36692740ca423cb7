"""Random Policies: predicates and priorities by name, custom ones with arguments, and further settings."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import HOSTNAME, ZONE, Draws

PREDICATES = (
    "PodFitsPorts",
    "PodFitsHostPorts",
    "PodFitsResources",
    "HostName",
    "MatchNodeSelector",
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxCinderVolumeCount",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
)
PRIORITIES = (
    "SelectorSpreadPriority",
    "InterPodAffinityPriority",
    "LeastRequestedPriority",
    "BalancedResourceAllocation",
    "NodePreferAvoidPodsPriority",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
    "ImageLocalityPriority",
    "ServiceSpreadingPriority",
    "EqualPriority",
    "MostRequestedPriority",
    "RequestedToCapacityRatioPriority",
)
LABELS = ("rack", "disk", ZONE, HOSTNAME, "missing")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "pods")


def random_policy(draws: Draws) -> JsonObject:
    """Return a Policy that upstream accepts.

    Policies with service affinity are used with a single running pod (see `random_classic_case`): among several,
    upstream follows an arbitrary one.
    """
    policy: JsonObject = {"kind": "Policy", "apiVersion": "v1"}
    if draws.chance(0.7):
        rules: list[Json] = [{"name": name} for name in draws.some(PREDICATES, 8)]
        if draws.chance(0.3):
            rules.append(_label_predicate(draws))
        if draws.chance(0.2):
            rules.append(_service_affinity(draws))
        policy["predicates"] = rules
    if draws.chance(0.8):
        chosen: list[Json] = [
            {"name": name, "weight": draws.one((1, 1, 2, 10, 10000))} for name in draws.some(PRIORITIES, 6)
        ]
        if draws.chance(0.5):
            chosen.append(_custom_priority(draws))
        policy["priorities"] = chosen
    if draws.chance(0.3):
        policy["hardPodAffinitySymmetricWeight"] = draws.one((1, 5, 100))
    if draws.chance(0.3):
        policy["alwaysCheckAllPredicates"] = draws.chance(0.8)
    return policy


def _label_predicate(draws: Draws) -> JsonObject:
    argument: JsonObject = {"labels": list[Json](draws.some(LABELS, 2, 1)), "presence": draws.chance(0.5)}
    name = draws.one(("CheckNodeLabelPresence", "CheckNodeLabelPresence", "Mine"))
    return {"name": name, "argument": {"labelsPresence": argument}}


def _service_affinity(draws: Draws) -> JsonObject:
    argument: JsonObject = {"labels": list[Json](draws.some(LABELS, 2, 1))}
    return {"name": "CheckServiceAffinity", "argument": {"serviceAffinity": argument}}


def _custom_priority(draws: Draws) -> JsonObject:
    rule: JsonObject = {"name": "Custom", "weight": draws.randint(1, 3)}
    kind = draws.randrange(3)
    if kind == 0:
        rule["argument"] = {"labelPreference": {"label": draws.one(LABELS), "presence": draws.chance(0.5)}}
    elif kind == 1:
        rule["argument"] = {"serviceAntiAffinity": {"label": draws.one(LABELS)}}
    else:
        utilizations = sorted(draws.some(range(101), 4, 1))
        shape: list[Json] = [{"utilization": each, "score": draws.randint(0, 10)} for each in utilizations]
        ratio: JsonObject = {"shape": shape}
        if draws.chance(0.6):
            ratio["resources"] = [{"name": name, "weight": draws.randint(0, 3)} for name in draws.some(RESOURCES, 3, 1)]
        rule["argument"] = {"requestedToCapacityRatioArguments": ratio}
    return rule
