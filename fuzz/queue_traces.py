"""Random queue traces in the recorded format: versions of pods, plugins with hints, operations on the scheduling queue.

Between two operations the clock advances by a random part of a second, so that pods are rarely equal in a queue.
Failures and ends of attempts are written as ``failAny`` and ``doneAny``: the real queue determines the pod
(`fuzz.oracle.Oracle.resolved`).
"""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import Draws

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND

POD_NAMES = ("p0", "p1", "p2", "p3", "p4")
NODE_NAMES = ("n1", "n2")
PLUGINS = ("P", "Q", "R")
DEFAULT_PLUGINS = (
    "NodeResourcesFit",
    "NodeAffinity",
    "TaintToleration",
    "NodeUnschedulable",
    "NodePorts",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeName",
    "VolumeBinding",
)
UPDATES = (
    "UpdateNodeAllocatable",
    "UpdateNodeLabel",
    "UpdateNodeTaint",
    "UpdateNodeCondition",
    "UpdateNodeAnnotation",
    "UpdatePodLabel",
    "UpdatePodScaleDown",
    "UpdatePodToleration",
    "Update",
)
GATES_GONE = "UpdatePodSchedulingGatesEliminated"
"""Label of an event that is only generated together with a pod, because the hint of SchedulingGates reads the pod."""
ACTIONS = ("Add", "Add", "Delete", "Delete", "All", *UPDATES)
RESOURCES = ("Node", "Node", "Pod", "Pod", "AssignedPod", "UnschedulablePod", "PersistentVolumeClaim", "*")
LONG_STEPS = (SECOND, 2 * SECOND, 5 * SECOND, 11 * SECOND, 31 * SECOND, 301 * SECOND)
OPERATIONS = {
    "add": 12,
    "update": 8,
    "delete": 4,
    "pop": 20,
    "popSpecific": 2,
    "failAny": 16,
    "doneAny": 3,
    "move": 14,
    "assignedAdd": 3,
    "assignedUpdate": 2,
    "assignedDelete": 3,
    "nodeUpdate": 4,
    "activate": 3,
    "flushBackoff": 8,
    "flushUnschedulable": 5,
    "nominate": 3,
    "unnominate": 1,
    "updateNominated": 1,
    "listerSet": 1,
    "listerRemove": 1,
    "gate": 3,
    "raw": 1,
    "close": 0.05,
}
"""Operations and their relative frequencies."""


def random_queue_case(seed: int, number: int) -> JsonObject:
    """Return a trace; the same seed and number give the same trace."""
    draws = Draws(f"queue/{seed}/{number}")
    trace = _Trace(draws, default_plugins=draws.chance(0.15))
    return {"id": f"fuzz/q{seed}-{number}", "note": "random", **trace.case()}


class _Trace:
    """The parts of a trace: versions of pods and nodes, and the plugins for them."""

    def __init__(self, draws: Draws, *, default_plugins: bool) -> None:
        self.draws = draws
        self.default_plugins = default_plugins
        self.plugins = DEFAULT_PLUGINS if default_plugins else PLUGINS
        self.gates = ["SchedulingGates"] if not default_plugins and draws.chance(0.6) else []
        self.gates += ["G"] if not default_plugins and draws.chance(0.5) else []
        self.pods: dict[str, JsonObject] = {}
        self.versions: dict[str, list[str]] = {}
        for name in draws.some(POD_NAMES, 5, 2):
            uid_changes, other_profile = draws.chance(0.05), draws.chance(0.1)
            keys = [name, *(f"{name}v{number}" for number in range(1, draws.randint(2, 4)))]
            self.versions[name] = keys
            for key in keys:
                uid = f"uid-{key}" if uid_changes else f"uid-{name}"
                self.pods[key] = pod = self._pod(name, uid)
                if other_profile:
                    # The same for all versions, because the API does not allow changing it.
                    _spec(pod)["schedulerName"] = "other"
        self.assigned = [f"r{number}" for number in range(1, 4)]
        for key in self.assigned:
            self.pods[key] = self._pod(key, f"uid-{key}", node=draws.one(NODE_NAMES))
            self.pods[f"{key}v1"] = self._pod(key, f"uid-{key}", node=draws.one(NODE_NAMES))
        self.objects: dict[str, JsonObject] = {
            f"{name}v{number}": self._node(name) for name in NODE_NAMES for number in range(3)
        }

    def case(self) -> JsonObject:
        draws = self.draws
        names, weights = list(OPERATIONS), list(OPERATIONS.values())
        ops: list[Json] = []
        closed = False
        for name in draws.choices(names, weights, k=draws.randint(10, 70)):
            # The real queue panics if it is closed twice.
            if name == "close" and closed:
                continue
            closed |= name == "close"
            ops.append({"op": "advance", "ns": self._step()})
            ops += self._operation(name)
        hints: JsonObject = {} if self.default_plugins else {plugin: self._hints() for plugin in (*self.plugins, "G")}
        return {
            "options": self._options(),
            "preEnqueue": list[Json](self.gates),
            "hints": hints,
            "pods": dict[str, Json](self.pods),
            "objects": dict[str, Json](self.objects),
            "cluster": [],
            "ops": ops,
        }

    def _step(self) -> int:
        draws = self.draws
        if draws.chance(0.15):
            return draws.one(LONG_STEPS)
        return draws.randint(1, 2000) if draws.chance(0.4) else draws.randint(1, 900_000_000)

    def _options(self) -> JsonObject:
        draws = self.draws
        options: JsonObject = {"startUnixNs": START + draws.randint(0, SECOND - 1)}
        if draws.chance(0.3):
            options["popFromBackoffQ"] = False
        if draws.chance(0.25):
            options["initialBackoffNs"] = draws.one((1, 3, 9)) * SECOND
            options["maxBackoffNs"] = draws.one((0, 1, 4, 20, 600)) * SECOND
        if draws.chance(0.4):
            options["maxInUnschedulableNs"] = draws.one((0, 1, 5, 60)) * SECOND
        if self.default_plugins:
            options["defaultPlugins"] = True
        elif draws.chance(0.1):
            options["profiles"] = ["other", *draws.some(["default-scheduler"], 1)]
        return options

    def _hints(self) -> list[Json]:
        draws = self.draws
        found: list[Json] = []
        for _ in range(draws.randint(0, 4)):
            hint: JsonObject = {
                "event": self._registered(),
                "answer": draws.one(("Queue", "Queue", "Skip", "Skip", "Error")),
            }
            if draws.chance(0.3):
                hint["byPod"] = {draws.one(POD_NAMES): draws.one(("Queue", "Skip"))}
            found.append(hint)
        return found

    def _event(self) -> JsonObject:
        draws = self.draws
        return {"resource": draws.one(RESOURCES), "actions": list[Json](draws.some(ACTIONS, 2, 1))}

    def _registered(self) -> JsonObject:
        event = self._event()
        if self.draws.chance(0.05):
            event["actions"] = [GATES_GONE]
        return event

    # Objects.

    def _pod(self, name: str, uid: str, *, node: str = "") -> JsonObject:
        draws = self.draws
        labels: JsonObject = {key: draws.one(("x", "y")) for key in draws.some(("app", "tier"), 2)}
        requests: JsonObject = {key: draws.one(("1", "2", "3")) for key in draws.some(("cpu", "memory"), 2)}
        spec: JsonObject = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
        status: JsonObject = {}
        if draws.chance(0.7):
            spec["priority"] = draws.randint(-1, 3)
        if draws.chance(0.3):
            spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in draws.some(("k", "l"), 2, 1)]
        if node:
            spec["nodeName"] = node
        else:
            if draws.chance(0.15):
                spec["schedulingGates"] = [{"name": "g"}]
            if draws.chance(0.15):
                status["nominatedNodeName"] = draws.one(NODE_NAMES)
        if draws.chance(0.25):
            spec |= self._constraints()
        metadata: JsonObject = {"name": name, "uid": uid, "labels": labels}
        return {"metadata": metadata, "spec": spec, "status": status}

    def _constraints(self) -> JsonObject:
        draws = self.draws
        selector: JsonObject = {"matchLabels": {"app": draws.one(("x", "y"))}}
        kind = draws.one(("nodeSelector", "spread", "affinity", "antiAffinity"))
        if kind == "nodeSelector":
            return {"nodeSelector": {"zone": draws.one(("a", "b"))}}
        if kind == "spread":
            constraint: JsonObject = {
                "maxSkew": 1,
                "topologyKey": draws.one(("zone", "rack")),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
            return {"topologySpreadConstraints": [constraint]}
        field = "podAffinity" if kind == "affinity" else "podAntiAffinity"
        term: JsonObject = {"topologyKey": "zone", "labelSelector": selector}
        return {"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    def _node(self, name: str) -> JsonObject:
        draws = self.draws
        amounts: JsonObject = {"cpu": draws.one(("2", "4", "8")), "memory": draws.one(("4Gi", "8Gi")), "pods": "10"}
        spec: JsonObject = {}
        if draws.chance(0.4):
            spec["taints"] = [{"key": key, "effect": "NoSchedule"} for key in draws.some(("k", "l"), 2, 1)]
        if draws.chance(0.2):
            spec["unschedulable"] = True
        labels: JsonObject = {key: draws.one(("a", "b")) for key in draws.some(("zone", "rack"), 2)}
        metadata: JsonObject = {"name": name, "labels": labels}
        if draws.chance(0.3):
            metadata["annotations"] = {"note": draws.one(("1", "2"))}
        status: JsonObject = {"allocatable": amounts, "capacity": amounts}
        if draws.chance(0.5):
            status["conditions"] = [{"type": "Ready", "status": draws.one(("True", "False"))}]
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}

    # Operations.

    def _operation(self, name: str) -> list[Json]:
        draws = self.draws
        match name:
            case "add" | "delete" | "popSpecific" | "listerSet" | "listerRemove" | "unnominate":
                return [{"op": name, "pod": self._any()}]
            case "update" | "updateNominated":
                keys = draws.one([*self.versions.values()])
                return [{"op": name, "old": draws.one(keys), "new": draws.one(keys)}]
            case "failAny":
                return [{"op": name, "pick": draws.randint(0, 5), **self._rejection()}]
            case "raw":
                return [{"op": "fail", "raw": True, "pod": self._any(), **self._rejection()}]
            case "doneAny":
                return [{"op": name, "pick": draws.randint(0, 5)}]
            case "move":
                return [self._move()]
            case "assignedAdd" | "assignedDelete":
                return [{"op": name, "pod": draws.one(self.assigned), **self._way()}]
            case "assignedUpdate":
                key = draws.one(self.assigned)
                return [{"op": name, "old": key, "new": f"{key}v1", **self._way()}]
            case "nodeUpdate":
                node = draws.one(NODE_NAMES)
                old, new = draws.some((f"{node}v0", f"{node}v1", f"{node}v2"), 2, 2)
                return [{"op": name, "old": old, "new": new}]
            case "activate":
                names = draws.some([*self.versions], 3, 1)
                # Several pods would be moved in the order of a Go map, so the trace moves only one.
                return [{"op": name, "pods": [draws.one(self.versions[each])]} for each in names]
            case "nominate":
                return [{"op": name, "pod": self._any(), **self._nomination()}]
            case "gate" if "G" in self.gates:
                # If two gates hold a pod, the order of a Go map determines which is reported.
                free = [key for key, versions in self.versions.items() if not self._gated(versions)]
                held: JsonObject = {"op": name, "plugin": "G", "pods": list[Json](draws.some(free, 3))}
                if draws.chance(0.3):
                    held["code"] = draws.one(("Error", "Unschedulable"))
                return [held]
            case "gate":
                return []
            case _:
                return [{"op": name}]

    def _gated(self, versions: list[str]) -> bool:
        return any("schedulingGates" in _spec(self.pods[key]) for key in versions)

    def _any(self) -> str:
        return self.draws.one(self.draws.one([*self.versions.values()]))

    def _way(self) -> JsonObject:
        return {"via": "queue"} if self.draws.chance(0.25) else {}

    def _rejection(self) -> JsonObject:
        draws = self.draws
        error = draws.chance(0.2)
        rejecting: list[Json] = [] if error else list(draws.some(self.plugins, 2, 1))
        pending: list[Json] = list(draws.some(self.plugins, 1)) if not error and draws.chance(0.2) else []
        nomination = self._nomination() if draws.chance(0.3) else {}
        return {"unschedulable": rejecting, "pending": pending, **nomination}

    def _nomination(self) -> JsonObject:
        mode = self.draws.one(("override", "override", "noop", ""))
        if not mode:
            return {}
        node: JsonObject = {"node": self.draws.one((*NODE_NAMES, ""))} if mode == "override" else {}
        return {"mode": mode, **node}

    def _move(self) -> JsonObject:
        draws = self.draws
        if draws.chance(0.1):
            label = draws.one(("UnschedulableTimeout", "ForceActivate"))
            return {"op": "move", "event": {"resource": "*", "actions": ["All"], "label": label}}
        event: JsonObject = {"resource": "Node", "actions": [draws.one(ACTIONS)]}
        move: JsonObject = {"op": "move", "event": event}
        if self.default_plugins:
            event["actions"] = [draws.one(("Add", "Delete"))]
            move["new" if event["actions"] == ["Add"] else "old"] = draws.one([*self.objects])
        elif draws.chance(0.6):
            event |= self._event()
        if draws.chance(0.15):
            move["maxPriority"] = draws.randint(-1, 3)
        elif draws.chance(0.15):
            move["preCheck"] = list[Json](draws.some([*self.versions], 3))
        return move


def _spec(pod: JsonObject) -> JsonObject:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return spec
