"""Random configuration texts: whole KubeSchedulerConfigurations, most of them with a mistake or two, as YAML or JSON.

Values are drawn by the type of the field, sometimes of another type or out of bounds; keys are misspelt, duplicated and
moved; the text is written in one of several styles and sometimes damaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
import yaml

from bayplan.conformance.cases import Json, JsonObject
from fuzz.configurations import API_VERSION, GATES
from fuzz.draws import Draws

Maker: TypeAlias = Callable[[Draws], Json]
Fields: TypeAlias = Mapping[str, tuple[Maker, float]]
"""The function that makes a field's value, and the probability that the field is present, by field name."""

PLUGINS = (
    "PrioritySort",
    "SchedulingGates",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "NodeDeclaredFeatures",
    "DefaultBinder",
)
REMOVED = (
    "EBSLimits",
    "GCEPDLimits",
    "AzureDiskLimits",
    "CinderLimits",
    "SelectorSpread",
    "NodeResourcesLeastAllocated",
)
POINTS = (
    "multiPoint",
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
DURATIONS = ("15s", "10s", "2s", "1m30s", "500ms", "0s", "-1s", "1h", "", "90", "1.5s", "x", "2562048h", ".5s", "1us")
RESOURCES = (
    "cpu",
    "memory",
    "example.com/gpu",
    "ephemeral-storage",
    "",
    "a b",
    "requests.cpu",
    "hugepages-2Mi",
    "example.com/",
)
WRONG: tuple[Json, ...] = (None, True, False, 0, 1, -1, 3.5, 1e20, 2147483648, "", "x", "1", [], {}, ["x"], {"a": 1})

MISTAKE = 0.02
"""The probability that a value has a random type."""


def _one(*choices: Json) -> Maker:
    return lambda draws: draws.one(choices)


def _often(usual: Maker, *odd: Json) -> Maker:
    return lambda draws: draws.one(odd) if draws.chance(0.06) else usual(draws)


def _whole(low: int, high: int) -> Maker:
    return _often(lambda draws: draws.randint(low, high), low - 1, high + 1, 0, -1, 2.0, 1 << 40)


def _list(maker: Maker, most: int = 3, least: int = 0) -> Maker:
    return lambda draws: [maker(draws) for _ in range(draws.randint(least, most))]


def _object(fields: Fields) -> Maker:
    def make(draws: Draws) -> Json:
        found: JsonObject = {}
        for name, (maker, chance) in fields.items():
            if draws.chance(chance):
                found[name] = draws.one(WRONG) if draws.chance(MISTAKE) else maker(draws)
        return _with_mistakes(draws, found)

    return make


def _with_mistakes(draws: Draws, found: JsonObject) -> JsonObject:
    if found and draws.chance(0.015):
        name = draws.one([*found])
        found[draws.one((name.upper(), name[:-1], f"{name}s", name.capitalize()))] = found.pop(name)
    if draws.chance(0.01):
        found[draws.one(("unknown", "foo", "Bar"))] = draws.one(WRONG)
    return found


_bool = _often(_one(True, False), "true", 1)
_text = _one("a", "b", "default-scheduler", "x y", "")
_duration = _often(_one(*DURATIONS[:5]), *DURATIONS)
_plugin_name = _often(_one(*PLUGINS), "*", "NoSuchPlugin", *REMOVED, "")
_resources = _list(_object({"name": (_often(_one(*RESOURCES[:3]), *RESOURCES), 0.97), "weight": (_whole(1, 100), 0.8)}))
_shape = _list(_object({"utilization": (_whole(0, 100), 0.95), "score": (_whole(0, 10), 0.95)}), 4)
_labels = _object({"matchLabels": (_one({"app": "a"}, {}, {"bad key!": "x"}), 0.7)})
_requirement = _object(
    {
        "key": (_often(_one("zone", "rack"), "", "a b"), 0.97),
        "operator": (_often(_one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), "Huh", ""), 0.97),
        "values": (_often(_list(_one("a", "b", "1")), ["a b!"]), 0.7),
    }
)
_term = _object({"matchExpressions": (_list(_requirement, 2), 0.8), "matchFields": (_list(_requirement, 1), 0.2)})
_affinity = _object(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": (
            _object({"nodeSelectorTerms": (_list(_term, 2), 0.95)}),
            0.7,
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": (
            _list(_object({"weight": (_whole(1, 100), 0.95), "preference": (_term, 0.95)}), 2),
            0.5,
        ),
    }
)
_spread = _object(
    {
        "maxSkew": (_whole(1, 5), 0.97),
        "topologyKey": (_often(_one("zone", "kubernetes.io/hostname"), "", "a b"), 0.97),
        "whenUnsatisfiable": (_often(_one("ScheduleAnyway", "DoNotSchedule"), "Never", ""), 0.97),
        "labelSelector": (_labels, 0.06),
        "minDomains": (_whole(1, 3), 0.06),
        "nodeAffinityPolicy": (_one("Honor", "Ignore"), 0.06),
        "matchLabelKeys": (_list(_text, 2), 0.04),
    }
)
_strategy = _object(
    {
        "type": (_often(_one("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"), "Other", ""), 0.95),
        "resources": (_resources, 0.6),
        "requestedToCapacityRatio": (_object({"shape": (_shape, 0.9)}), 0.4),
    }
)
ARGUMENTS: Mapping[str, Maker] = {
    "DefaultPreemption": _object(
        {"minCandidateNodesPercentage": (_whole(0, 100), 0.6), "minCandidateNodesAbsolute": (_whole(0, 200), 0.6)}
    ),
    "DynamicResources": _object({"filterTimeout": (_duration, 0.6), "bindingTimeout": (_duration, 0.4)}),
    "InterPodAffinity": _object(
        {"hardPodAffinityWeight": (_whole(0, 100), 0.7), "ignorePreferredTermsOfExistingPods": (_bool, 0.4)}
    ),
    "NodeAffinity": _object({"addedAffinity": (_affinity, 0.9)}),
    "NodeResourcesBalancedAllocation": _object({"resources": (_resources, 0.9)}),
    "NodeResourcesFit": _object(
        {
            "ignoredResources": (_list(_one(*RESOURCES), 2), 0.3),
            "ignoredResourceGroups": (_list(_one("example.com", "a/b", ""), 2), 0.3),
            "scoringStrategy": (_strategy, 0.8),
        }
    ),
    "PodTopologySpread": _object(
        {
            "defaultConstraints": (_list(_spread), 0.7),
            "defaultingType": (_often(_one("List", "List", "System"), "Other", ""), 0.9),
        }
    ),
    "VolumeBinding": _object({"bindTimeoutSeconds": (_whole(0, 600), 0.7), "shape": (_shape, 0.4)}),
    "NoSuchPlugin": _object({"anything": (_one(*WRONG), 0.8)}),
    "NodeName": _object({"anything": (_one(*WRONG), 0.5)}),
}


def _arguments(draws: Draws) -> Json:
    name = draws.one([*ARGUMENTS]) if not draws.chance(0.04) else draws.one((*PLUGINS, *REMOVED, ""))
    maker = ARGUMENTS.get(name, _object({}))
    args = maker(draws)
    if isinstance(args, dict) and draws.chance(0.3):
        args["apiVersion"] = (
            API_VERSION if not draws.chance(0.1) else draws.one(("v1", "kubescheduler.config.k8s.io/v1beta3"))
        )
        args["kind"] = f"{name}Args" if not draws.chance(0.05) else draws.one(("NodeAffinityArgs", "Pod", ""))
    return {"name": name, "args": args} if not draws.chance(0.03) else {"name": name}


_entry = _object({"name": (_plugin_name, 0.99), "weight": (_whole(1, 10), 0.25)})
_off = _often(_list(_object({"name": (_plugin_name, 0.99)}), 2), [{"name": "*"}])
_plugin_set = _object({"enabled": (_list(_entry), 0.7), "disabled": (_off, 0.5)})


def _plugins(draws: Draws) -> Json:
    sets: JsonObject = {point: _plugin_set(draws) for point in draws.some(POINTS, 2)}
    if draws.chance(0.3):
        # More often valid than random plugins: a few plugins disabled at all points, or new weights of some scores.
        names = draws.some(PLUGINS[2:-1], 4, 1)
        score: list[Json] = [{"name": name, "weight": draws.randint(1, 9)} for name in names]
        enabled: list[Json] = [{"name": name} for name in names]
        sets |= draws.one(
            ({"score": {"enabled": score}}, {"multiPoint": {"enabled": enabled}}, {"multiPoint": {"disabled": enabled}})
        )
    return _with_mistakes(draws, sets)


_profile = _object(
    {
        "schedulerName": (_often(_one("default-scheduler", "a", "b", "c"), "", None), 0.85),
        "percentageOfNodesToScore": (_whole(0, 100), 0.15),
        "plugins": (_plugins, 0.6),
        "pluginConfig": (_list(_arguments, 2), 0.6),
    }
)
_extender = _object(
    {
        "urlPrefix": (_often(_one("http://127.0.0.1:1/x", "https://example.com"), "", ":"), 0.95),
        "filterVerb": (_text, 0.5),
        "preemptVerb": (_text, 0.2),
        "prioritizeVerb": (_one("prioritize", ""), 0.4),
        "bindVerb": (_one("bind", ""), 0.15),
        "weight": (_whole(1, 100), 0.7),
        "enableHTTPS": (_bool, 0.2),
        "httpTimeout": (_duration, 0.3),
        "nodeCacheCapable": (_bool, 0.3),
        "ignorable": (_bool, 0.3),
        "managedResources": (
            _list(
                _object(
                    {
                        "name": (_often(_one("example.com/a", "example.com/b"), *RESOURCES), 1),
                        "ignoredByScheduler": (_bool, 0.3),
                    }
                ),
                2,
            ),
            0.3,
        ),
        "tlsConfig": (
            _object(
                {"insecure": (_bool, 0.5), "serverName": (_text, 0.3), "caFile": (_one("", "/nonexistent/ca.pem"), 0.2)}
            ),
            0.1,
        ),
    }
)
_election = _object(
    {
        "leaderElect": (_bool, 0.6),
        "leaseDuration": (_duration, 0.4),
        "renewDeadline": (_duration, 0.4),
        "retryPeriod": (_duration, 0.4),
        "resourceLock": (_often(_one("leases", ""), "endpoints"), 0.3),
        "resourceName": (_text, 0.3),
        "resourceNamespace": (_text, 0.3),
    }
)
_client = _object(
    {
        "kubeconfig": (_text, 0.5),
        "acceptContentTypes": (_text, 0.2),
        "contentType": (_text, 0.2),
        "qps": (_one(0, 1, 50.5, -1, 1e6, 3.4e38), 0.4),
        "burst": (_whole(0, 100), 0.4),
    }
)
_document = _object(
    {
        "parallelism": (_whole(1, 64), 0.2),
        "percentageOfNodesToScore": (_whole(0, 100), 0.2),
        "podInitialBackoffSeconds": (_whole(1, 5), 0.15),
        "podMaxBackoffSeconds": (_whole(1, 20), 0.15),
        "leaderElection": (_election, 0.25),
        "clientConnection": (_client, 0.15),
        "enableProfiling": (_bool, 0.1),
        "enableContentionProfiling": (_bool, 0.1),
        "delayCacheUntilActive": (_bool, 0.1),
        "profiles": (_list(_profile, 3, 1), 0.85),
        "extenders": (_list(_extender, 2, 1), 0.2),
    }
)


def random_config_case(seed: int, number: int) -> JsonObject:
    """Return a configuration text in the recorded format; the same seed and number give the same text."""
    draws = Draws(f"config/{seed}/{number}")
    document = _document(draws)
    assert isinstance(document, dict)
    kind = "KubeSchedulerConfiguration" if not draws.chance(0.01) else draws.one(("Policy", "NodeAffinityArgs", ""))
    odd = ("kubescheduler.config.k8s.io/v1beta3", "kubescheduler.config.k8s.io/__internal", "v1", "a/b/c", "")
    version = API_VERSION if not draws.chance(0.02) else draws.one(odd)
    text = _written(draws, {"apiVersion": version, "kind": kind, **document})
    if draws.chance(0.1):
        text = _damaged(draws, text)
    case: JsonObject = {"id": f"fuzz/c{seed}-{number}", "yaml": text}
    if draws.chance(0.15):
        case["featureGates"] = {gate: draws.chance(0.5) for gate in draws.some(GATES, 2, 1)}
    return case


def _written(draws: Draws, document: JsonObject) -> str:
    style = draws.randrange(5)
    if style == 0:
        text = msgspec.json.encode(document).decode()
        return text if draws.chance(0.5) else msgspec.json.format(text, indent=draws.one((1, 2, 4)))
    return yaml.safe_dump(
        document,
        sort_keys=draws.chance(0.3),
        default_flow_style=draws.one((False, False, None)),
        indent=draws.one((2, 2, 4)),
        width=draws.one((40, 80, 200)),
        explicit_start=draws.chance(0.1),
        default_style=draws.one((None, None, None, '"')) if style == 1 else None,
    )


def _damaged(draws: Draws, text: str) -> str:
    """Return the text with one change that a user may make by mistake."""
    lines = text.splitlines(keepends=True)
    at = draws.randrange(len(lines))
    match draws.randrange(7):
        case 0:
            lines.insert(at, lines[at])
        case 1:
            del lines[at]
        case 2:
            lines[at] = " " + lines[at]
        case 3:
            lines[at] = re.sub(r"^ ", "", lines[at])
        case 4:
            lines[at] = lines[at].replace(":", "", 1)
        case 5:
            lines.insert(at, draws.one(("# a comment\n", "\n", "---\n", "foo: bar\n", "  bar: 1\n", "\tx: 1\n")))
        case _:
            lines[at] = lines[at].rstrip("\n") + draws.one((" # why\n", "  \n", "}\n", "'\n", " x\n", ",\n"))
    return "".join(lines)
