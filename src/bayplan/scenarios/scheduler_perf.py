"""Read configurations of scheduler_perf, kube-scheduler's own benchmark: one scenario for each workload of each case.

Upstream's waits (all pods of an operation scheduled, a barrier) must succeed within `TIMEOUT` of virtual time, which is
also how long churn continues. Thresholds, in pods per second of a real cluster, and metrics are ignored. `steadyState`
needs a cluster in which scheduling takes time, and is rejected.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.3/test/integration/scheduler_perf
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from bayplan.base.durations import MILLISECOND_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.formats.documents import Document
from bayplan.formats.inputs import Inputs
from bayplan.formats.manifest import Manifest, shown
from bayplan.objects.pod import Pod
from bayplan.scenarios.perf_objects import PerfObjects, labels_match
from bayplan.scenarios.reading import ScenarioPlan, StepPlan
from bayplan.scenarios.scenario import Scenario, Step
from bayplan.sim.operations import Apply, Delete
from bayplan.sim.simulator import Simulator

TIMEOUT = "10m"
"""Time limit of each operation."""
_TIMEOUT_NS = 600 * SECOND_NS

Operation: TypeAlias = Mapping[str, Any]
Found: TypeAlias = tuple[str, Sequence[str], str, Callable[[], ScenarioPlan]]
"""The name of a scenario, its labels, its file and line, and a function that returns its plan."""


def is_scheduler_perf(value: object) -> bool:
    """Return whether a document is a configuration of scheduler_perf: a list of cases."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and "workloadTemplate" in each for each in value)
    )


def read_scheduler_perf(document: Document, folder: Path) -> Iterator[Found]:
    """Yield the workloads of a configuration, named ``case/workload``.

    Raises:
        InputError: a case has no name or no workloads.
    """
    for index, case in enumerate(cast("list[dict[str, Any]]", document.value)):
        path = f"$[{index}]"
        if not isinstance(case.get("name"), str) or not isinstance(case.get("workloads"), list):
            raise InputError(
                f"case {path}",
                where=document.where(path),
                wanted="a name and a list of workloads",
                got="none or only one of them",
            )
        for number, workload in enumerate(case["workloads"]):
            where = f"{path}.workloads[{number}]"
            if not isinstance(workload, dict) or not isinstance(workload.get("name"), str):
                raise InputError(f"workload {where}", where=document.where(where), wanted="a name", got="none")
            name = f"{case['name']}/{workload['name']}"
            labels = (*(case.get("labels") or ()), *(workload.get("labels") or ()))
            yield name, labels, document.where(where), _Maker(document, index, case, workload, folder, name).plan


class _Maker:
    """Creates the plan of one workload."""

    def __init__(
        self, document: Document, index: int, case: Operation, workload: Operation, folder: Path, name: str
    ) -> None:
        self._document = document
        self._path = f"$[{index}].workloadTemplate"
        self._case = case
        self._workload = workload
        self._folder = folder
        self._name = name
        self._objects = PerfObjects(folder)
        self._steps: list[StepPlan] = []
        self._where = ""
        self._pods = 0

    def plan(self) -> ScenarioPlan:
        """Return the plan.

        Raises:
            InputError: an operation, a parameter or a template is invalid.
        """
        case, workload = self._case, self._workload
        for index, operation in enumerate(case["workloadTemplate"]):
            self._where = self._document.where(f"{self._path}[{index}]")
            try:
                self._add(operation, index)
            except InputError as problem:
                if problem.where:
                    raise
                what = f"{self._name} {problem.what}"
                raise InputError(
                    what, where=self._where, wanted=problem.wanted, got=problem.got, hint=problem.hint
                ) from None
        gates = {**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})}
        config = workload.get("schedulerConfigPath") or case.get("schedulerConfigPath")
        scenario = Scenario(
            api_version="bayplan.io/v1alpha1",
            kind="Scenario",
            name=self._name,
            config=config,
            feature_gates=",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items()),
        )
        return ScenarioPlan(
            name=self._name,
            file=self._document.source.file,
            scenario=scenario,
            inputs=Inputs(manifest=Manifest(), trace=None),
            steps=self._steps,
            folder=self._folder,
        )

    # --- operations ---------------------------------------------------------------------------------------------------

    def _add(self, operation: Operation, index: int) -> None:
        code = operation.get("opcode")
        adders: dict[object, Callable[[Operation, int], None]] = {
            "barrier": self._barrier,
            "churn": self._churn,
            "createAny": self._create_any,
            "createNamespaces": self._create_namespaces,
            "createNodes": self._create_nodes,
            "createPodGroups": self._create_any,
            "createPodSets": self._create_pod_sets,
            "createPods": self._create_pods,
            "createResourceDriver": self._refuse,
            "deletePods": self._delete_pods,
            "sleep": self._sleep,
            "startCollectingMetrics": self._nothing,
            "stopCollectingMetrics": self._nothing,
            "updateAny": self._update_any,
            "waitForPodGroups": self._nothing,
        }
        if code not in adders:
            raise InputError("$.opcode", got=repr(code), wanted=f"one of {', '.join(map(str, adders))}")
        adders[code](operation, index)

    def _nothing(self, operation: Operation, index: int) -> None:
        """Ignore the operation: Bayplan collects no metrics, and does not need to wait for pod groups."""

    def _refuse(self, operation: Operation, index: int) -> None:
        raise InputError(
            "$.opcode",
            got=repr(operation.get("opcode")),
            wanted="an operation without a DRA driver, because Bayplan runs none",
        )

    def _create_nodes(self, operation: Operation, index: int) -> None:
        count = self._count(operation)
        self._step(
            f"createNodes: {count:,}", create=self._objects.nodes(operation, count, index, self._values(operation))
        )

    def _create_namespaces(self, operation: Operation, index: int) -> None:
        count = self._count(operation)
        items = self._objects.namespaces(operation, count)
        self._step(f"createNamespaces: {count:,}", create=items)

    def _create_any(self, operation: Operation, index: int) -> None:
        count = self._count(operation) if "count" in operation or "countParam" in operation else 1
        path = self._template(operation, "templatePath")
        items = self._objects.many(path, count, str(operation.get("namespace") or ""), index, self._values(operation))
        self._step(f"{operation['opcode']}: {count:,}", create=items)

    def _create_pods(self, operation: Operation, index: int) -> None:
        if operation.get("steadyState") or operation.get("steadyStateParam"):
            raise InputError("$.steadyState is not supported: create the pods once")
        count = self._count(operation)
        multiplier = operation.get("countMultiplierParam")
        if multiplier is not None:
            count *= self._whole(multiplier, "countMultiplierParam")
        self._pods += 1
        namespace = str(operation.get("namespace") or f"namespace-{index + 1}")
        batch = operation.get("signatureBatchSizeParam")
        size = self._whole(batch, "signatureBatchSizeParam") if batch else int(operation.get("signatureBatchSize") or 1)
        default = self._case.get("defaultPodTemplatePath")
        has_template = operation.get("podTemplatePath") or default
        path = self._template(operation, "podTemplatePath", default) if has_template else None
        items = self._objects.pods(
            operation, path, count, namespace, f"{self._pods}", self._values(operation), signature_batch=size
        )
        self._step(f"createPods: {count:,} in {namespace}", create=items)
        if not operation.get("skipWaitToCompletion"):
            keys = frozenset(item.key for item in items if isinstance(item, Pod))
            self._step(f"all {count:,} pods scheduled", act=lambda simulator: _wait(simulator, keys.__contains__, {}))

    def _create_pod_sets(self, operation: Operation, index: int) -> None:
        inner, prefix = operation.get("createPodsOp"), operation.get("namespacePrefix")
        if not isinstance(inner, dict) or not isinstance(prefix, str):
            wanted = "the object createPodsOp and the string namespacePrefix"
            raise InputError("createPodSets", wanted=wanted, got=f"{shown(inner)} and {shown(prefix)}")
        for number in range(self._count(operation)):
            self._create_pods({**inner, "namespace": f"{prefix}-{number}"}, index)

    def _delete_pods(self, operation: Operation, index: int) -> None:
        namespace, labels = str(operation.get("namespace") or ""), operation.get("labelSelector") or {}
        rate, waits = int(operation.get("deletePodsPerSecond") or 0), not operation.get("skipWaitToCompletion")

        def delete(simulator: Simulator) -> None:
            time_ns = simulator.now_ns
            for pod in list(simulator.cluster.store.pods.values()):
                if pod.metadata.namespace == namespace and labels_match(labels, pod):
                    simulator.at(time_ns, Delete(Pod, pod.key))
                    time_ns += SECOND_NS // rate if rate else 0
            simulator.advance(time_ns if waits else simulator.now_ns)

        self._step(f"deletePods in {namespace}", act=delete)

    def _update_any(self, operation: Operation, index: int) -> None:
        count = self._count(operation) if "count" in operation or "countParam" in operation else 1
        path = self._template(operation, "templatePath")
        rate, waits = int(operation.get("updatePerSecond") or 0), not operation.get("skipWaitToCompletion")
        items = self._objects.many(path, count, str(operation.get("namespace") or ""), index, self._values(operation))

        def update(simulator: Simulator) -> None:
            time_ns = simulator.now_ns
            for item in items:
                simulator.at(time_ns, Apply(item))
                time_ns += SECOND_NS // rate if rate else 0
            simulator.advance(time_ns if waits else simulator.now_ns)

        self._step(f"updateAny: {count:,}", act=update)

    def _churn(self, operation: Operation, index: int) -> None:
        mode, number = operation.get("mode"), int(operation.get("number") or 0)
        paths = operation.get("templatePaths")
        if mode not in ("create", "recreate") or not isinstance(paths, list) or (mode == "recreate" and not number):
            raise InputError("$.mode", got=repr(mode), wanted="create or recreate (with a number), and templatePaths")
        interval_ns = int(operation.get("intervalMilliseconds") or 500) * MILLISECOND_NS
        namespace = str(operation.get("namespace") or f"namespace-{index + 1}")
        objects = self._objects

        def churn(simulator: Simulator) -> None:
            begun_ns = simulator.now_ns
            for cycle in range(_TIMEOUT_NS // interval_ns):
                time_ns = begun_ns + (cycle + 1) * interval_ns
                if mode == "create" and number and cycle >= number:
                    break
                turn = cycle % number if mode == "recreate" else cycle
                gone = mode == "recreate" and cycle // number % 2 == 1
                for item in objects.churned([self._folder / path for path in paths], namespace, turn):
                    simulator.at(time_ns, Delete(type(item), item.key) if gone else Apply(item))

        self._step("churn", act=churn)

    def _barrier(self, operation: Operation, index: int) -> None:
        stage = operation.get("stageRequirement") or "Scheduled"
        if stage not in ("Scheduled", "Attempted"):
            raise InputError("$.stageRequirement", got=repr(stage), wanted="Scheduled or Attempted")
        namespaces = frozenset(operation.get("namespaces") or ())
        labels = operation.get("labelSelector") or {}

        def chosen(key: str) -> bool:
            return not namespaces or key.partition("/")[0] in namespaces

        self._step(
            f"barrier: {stage}", act=lambda simulator: _wait(simulator, chosen, labels, attempted=stage == "Attempted")
        )

    def _sleep(self, operation: Operation, index: int) -> None:
        text = operation.get("duration") or self._param(str(operation.get("durationParam")), "durationParam")
        read_long_duration(str(text), what="$.duration")
        self._step(f"sleep {text}", wait=str(text))

    # --- parameters ---------------------------------------------------------------------------------------------------

    def _count(self, operation: Operation) -> int:
        if operation.get("countParam"):
            return self._whole(operation["countParam"], "countParam")
        count = operation.get("count")
        if not isinstance(count, int) or count < 0:
            raise InputError("$.count", got=repr(count), wanted="an integer of at least 0, or countParam")
        return count

    def _whole(self, name: object, field: str) -> int:
        found = self._param(str(name), field)
        if not isinstance(found, int):
            raise InputError(f"$.{field} {name}", got=repr(found), wanted="a parameter whose value is an integer")
        return found

    def _param(self, name: str, field: str) -> object:
        params = self._workload.get("params") or {}
        if not name.startswith("$") or name[1:] not in params:
            known = (
                f"one of {', '.join(f'${each}' for each in params)}"
                if params
                else "a parameter of the workload, which has none"
            )
            raise InputError(f"$.{field}", got=repr(name), wanted=known)
        return params[name[1:]]

    def _values(self, operation: Operation) -> dict[str, Any]:
        given = operation.get("templateParams") or {}
        return {
            name: self._param(value, "templateParams") if isinstance(value, str) and value.startswith("$") else value
            for name, value in given.items()
        }

    def _template(self, operation: Operation, field: str, default: object = None) -> Path:
        path = operation.get(field) or default
        if not isinstance(path, str):
            raise InputError(f"$.{field}", wanted="the path of a template", got="none")
        return self._folder / path

    def _step(
        self,
        name: str,
        *,
        create: Sequence[Any] = (),
        act: Callable[[Simulator], None] | None = None,
        wait: str | None = None,
    ) -> None:
        step = Step(name=name, create=tuple({} for _ in create[:1]), wait=wait, timeout=TIMEOUT)
        wait_ns = None if wait is None else read_long_duration(wait, what="wait")
        plan = StepPlan(
            step=step,
            number=len(self._steps) + 1,
            where=self._where,
            timeout_ns=_TIMEOUT_NS,
            wait_ns=wait_ns,
            objects=create,
            act=act,
        )
        self._steps.append(plan)


def _wait(
    simulator: Simulator, chosen: Callable[[str], bool], labels: Mapping[str, str], *, attempted: bool = False
) -> None:
    """Advance until all chosen pods are scheduled or, with `attempted`, were tried.

    Raises:
        InputError: this takes longer than `TIMEOUT`.
    """
    pods = [
        pod
        for pod in simulator.pods
        if chosen(pod.key) and pod.ended_ns is None and pod.pod is not None and labels_match(labels, pod.pod)
    ]

    def missing() -> list[str]:
        return [
            pod.key
            for pod in pods
            if pod.bound_ns is None and pod.ended_ns is None and not (attempted and pod.attempts)
        ]

    if missing() and not simulator.advance(simulator.now_ns + _TIMEOUT_NS, stop=lambda: not missing()):
        left = missing()
        messages = {pod.key: pod.message for pod in pods}
        got = f"{len(left):,} of {len(pods):,} missing; {left[0]}: {messages[left[0]] or 'no attempt'}"
        wanted = f"all pods {'attempted' if attempted else 'scheduled'} within {TIMEOUT}"
        raise InputError("barrier", wanted=wanted, got=got)
