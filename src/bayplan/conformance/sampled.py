"""Answer sampled cases: the node of each pod if only some nodes are examined, and the number of examined nodes.

The format is described in `oracle/current/FORMAT.md` (sampled cases). The real scheduler chooses at random among the
best nodes of its sample. A case therefore has the chosen node of each pod in ``follow``. If that node is one of Bayplan's
best nodes, too, it is chosen, so that the next pod is scheduled in the same cluster. ``hosts`` in the answer are all
equally good nodes.
"""

from __future__ import annotations

from bayplan.base.errors import BayplanError
from bayplan.base.version import KUBERNETES_VERSION
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.cycles import make_scheduler
from bayplan.engine.cycle import schedule_pod
from bayplan.engine.queued_pod import key_of
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import Pick, Ties, first_by_name
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState


def answer_sampled_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a sampled case; an error if upstream would reject the case."""
    answer: JsonObject = {"id": case["id"], "kubernetes": KUBERNETES_VERSION, "error": None, "sampled": None}
    try:
        scheduler, objects = make_scheduler(case, sampling=True)
    except BayplanError as problem:
        answer["error"] = str(problem)
        return answer
    written = case.get("follow")
    follow = [*written] if isinstance(written, list) else []
    follow += [None] * (len(objects.pods_to_schedule) - len(follow))
    answer["sampled"] = [
        _schedule(scheduler, objects.as_given(scheduler.pods[key]), host)
        for key, host in zip(objects.pods_to_schedule, follow, strict=False)
    ]
    return answer


def _schedule(scheduler: Scheduler, pod: Pod, host: Json) -> JsonObject:
    key = key_of(pod)
    profile = scheduler.profiles[pod.spec.scheduler_name]
    plan = scheduler.plans.plan_for(profile, pod)
    result = schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, take(host), scheduler.sampling)
    recorded: JsonObject = {"pod": key, "host": None, "hosts": [], "evaluated": 0, "feasible": 0, "message": None}
    if result.failure is not None:
        recorded["message"] = result.diagnosis.message() if result.diagnosis is not None else result.failure.message
        return recorded
    names = scheduler.state.nodes.names
    recorded["host"] = names[result.row]
    recorded["hosts"] = list[Json](sorted(names[row] or "" for row in map(int, result.ties)))
    recorded["evaluated"], recorded["feasible"] = result.evaluated_nodes, result.feasible_nodes
    scheduler.assume(plan, pod, key, result.row)
    return recorded


def take(host: Json) -> Pick:
    """Return a pick function that chooses this node if it is among the best, else the first of the best by name."""

    def pick(state: ClusterState, ties: Ties) -> int:
        row = state.nodes.row_of.get(host, -1) if isinstance(host, str) else -1
        return row if row in list(map(int, ties)) else first_by_name(state, ties)

    return pick
