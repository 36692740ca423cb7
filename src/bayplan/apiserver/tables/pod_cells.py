"""The row of a pod: ready containers, status, restarts, addresses."""

from __future__ import annotations

from bayplan.apiserver.tables.ages import age, human_duration, seconds_of
from bayplan.base.plain_data import Document, part, parts

_NONE = "<none>"


def _count(status: Document) -> int:
    found = status.get("restartCount")
    return found if isinstance(found, int) else 0


def _finished_at(status: Document) -> str:
    return str(part(status, "lastState", "terminated").get("finishedAt") or "")


def _ending(terminated: Document) -> str:
    """Return the status text of a terminated container."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _condition(pod: Document, kind: str) -> Document:
    return next((each for each in parts(part(pod, "status"), "conditions") if each.get("type") == kind), {})


class _Summary:
    """The number of ready containers, the restarts and the status text of a pod, computed from its containers."""

    def __init__(self, pod: Document) -> None:
        spec, status = part(pod, "spec"), part(pod, "status")
        self.pod = pod
        self.ready = self.restarts = 0
        self.last_restart = ""
        self.sidecars = {
            str(each.get("name")) for each in parts(spec, "initContainers") if each.get("restartPolicy") == "Always"
        }
        self.total = len(parts(spec, "containers")) + len(self.sidecars)
        self.reason = str(status.get("reason") or status.get("phase") or "")
        if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        sidecar_restarts, sidecar_last = 0, ""
        for each in parts(status, "initContainerStatuses"):
            if each.get("name") in self.sidecars:
                sidecar_restarts += _count(each)
                sidecar_last = max(sidecar_last, _finished_at(each))
        initializing = self._initialize(parts(status, "initContainerStatuses"), len(parts(spec, "initContainers")))
        if not initializing or _condition(pod, "Initialized").get("status") == "True":
            self.restarts, self.last_restart = sidecar_restarts, sidecar_last
            self._run(parts(status, "containerStatuses"))
        self._terminate()

    def _initialize(self, statuses: list[Document], total: int) -> bool:
        """Add the init containers to the summary, and return whether one of them has not finished."""
        for index, each in enumerate(statuses):
            self.restarts += _count(each)
            self.last_restart = max(self.last_restart, _finished_at(each))
            terminated, waiting = part(each, "state", "terminated"), part(each, "state", "waiting")
            if terminated and not terminated.get("exitCode"):
                continue
            if each.get("name") in self.sidecars and each.get("started"):
                self.ready += bool(each.get("ready"))
                continue
            if terminated:
                self.reason = f"Init:{_ending(terminated)}"
            elif waiting.get("reason") not in (None, "", "PodInitializing"):
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{total}"
            return True
        return False

    def _run(self, statuses: list[Document]) -> None:
        running, error = False, ""
        for each in reversed(statuses):
            self.restarts += _count(each)
            self.last_restart = max(self.last_restart, _finished_at(each))
            state = part(each, "state")
            terminated, waiting = part(state, "terminated"), part(state, "waiting")
            if waiting.get("reason"):
                self.reason = str(waiting["reason"])
            elif terminated:
                self.reason = _ending(terminated)
                if terminated.get("exitCode"):
                    error = self.reason
            elif each.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and _condition(self.pod, "Ready").get("status") == "True":
                self.reason = "Running"
            else:
                self.reason = error or ("NotReady" if running else self.reason)

    def _terminate(self) -> None:
        status = part(self.pod, "status")
        if part(self.pod, "metadata").get("deletionTimestamp"):
            if status.get("reason") == "NodeLost":
                self.reason = "Unknown"
            elif status.get("phase") not in ("Succeeded", "Failed"):
                self.reason = "Terminating"


def pod_cells(pod: Document, now: float) -> list[object]:
    """Return the cells of a pod's row."""
    metadata, spec, status = part(pod, "metadata"), part(pod, "spec"), part(pod, "status")
    summary = _Summary(pod)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        ago = human_duration(now - seconds_of(summary.last_restart))
        restarts += f" ({ago} ago)"
    addresses = parts(status, "podIPs")
    return [
        metadata.get("name"),
        f"{summary.ready}/{summary.total}",
        summary.reason,
        restarts,
        age(metadata.get("creationTimestamp"), now),
        (addresses[0].get("ip") if addresses else "") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _readiness_gates(pod, spec),
    ]


def _readiness_gates(pod: Document, spec: Document) -> str:
    gates = parts(spec, "readinessGates")
    if not gates:
        return _NONE
    met = sum(_condition(pod, str(each.get("conditionType"))).get("status") == "True" for each in gates)
    return f"{met}/{len(gates)}"


def pod_conditions(pod: Document) -> list[Document]:
    """Return the conditions of a pod's row: `Completed` if the pod has finished, else none."""
    phase = part(pod, "status").get("phase")
    texts = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }
    if phase not in texts:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": texts[str(phase)]}]
