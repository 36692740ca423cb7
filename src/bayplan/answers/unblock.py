"""Search for steps that get a waiting pod placed. Each is verified by scheduling in a fork; the least risky come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, combinations

import msgspec
from msgspec.structs import replace

from bayplan.analysis.cause_words import ADDED_AFFINITY
from bayplan.analysis.filter_matrix import GATES
from bayplan.analysis.root_cause import RootCause
from bayplan.analysis.rows import Rows
from bayplan.analysis.units import format_list
from bayplan.answers.displaced_pods import is_sibling
from bayplan.answers.move_steps import move_steps, without_evictions
from bayplan.answers.node_steps import added_nodes, node_steps
from bayplan.answers.pod_diagnosis import PodDiagnosis, diagnose_pod
from bayplan.answers.pod_steps import gate_steps, pod_steps
from bayplan.answers.shape_catalogue import ShapeCatalogue
from bayplan.answers.step_texts import named, step_text
from bayplan.answers.steps import RANKS, RISKS, Step, StepKind, changes_of, edited, includes, with_spec
from bayplan.answers.terminating_pods import terminating_pods
from bayplan.answers.trial import Placement, Trial, TrialResult
from bayplan.answers.waiting_reasons import equal_pods, other_reasons
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.objects.kinds import encode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.pod_info import PodInfo

MAX_PAIRS = 60
"""Maximum number of pairs of steps to try, if no single step works other than a new node."""

MAX_NODES_IN_PAIRS = 6
"""Maximum number of shapes of new nodes to try together with other steps."""

MAX_OF_KIND = 3
"""Maximum number of steps of one kind in the answer."""

MAX_ADDED_NODES = 50


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """One way to get a pod placed, verified in a fork: the scheduler placed the pod.

    Attributes:
        rank: 1 for the best suggestion.
        kind: the kind of the change, see `StepKind`; for a pair of changes, that of the riskier one.
        text: the suggested action.
        risk: the possible effects on other pods.
        cost: the relative cost from 0 to 1, among suggestions of the same kind.
        node: the node of the pod in question; "" if only other waiting pods get one.
        placed: the number of waiting pods that get a node, excluding pods that fit without the change.
        waiting: the number of waiting pods, with the same exclusion.
        moved: the pods that move to other nodes.
        evicted: the keys of pods that lose their nodes and then wait, or are not recreated.
        commands: the kubectl commands for the change, if there are any.
        objects: the new or changed objects, as documents; `Cluster.add` accepts them.
        deleted: the keys of pods that are deleted.
        ended: the keys of terminating pods for whose end the pod in question then waits.
    """

    rank: int
    kind: str
    text: str
    risk: str
    cost: float
    node: str
    placed: int
    waiting: int
    moved: list[Placement]
    evicted: list[str]
    commands: list[str]
    objects: list[dict[str, object]]
    deleted: list[str]
    ended: list[str]


class Unblocking(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod, or the pods of a workload, wait, and suggestions to get them placed.

    Attributes:
        verdict: the answer in one sentence.
        pods: the keys of the pods in question.
        waiting: the keys of those that fit nowhere now.
        fits: whether all pods fit unchanged; then there is nothing to suggest.
        cause: why the first of the waiting pods fits nowhere; None if all fit.
        suggestions: the suggestions, the least risky first.
        trials: the number of changes tried.
        limits: the changes that were not tried, in words.
        assumptions: the assumptions behind the answer, see `bayplan.app.sources`.
    """

    verdict: str
    pods: list[str]
    waiting: list[str]
    fits: bool
    cause: RootCause | None
    suggestions: list[Suggestion]
    trials: int
    limits: list[str]
    assumptions: list[str] = []

    def __repr__(self) -> str:
        return f"Unblocking(verdict={self.verdict!r}, rows={self.rows!r})"

    @property
    def rows(self) -> Rows[Suggestion]:
        """Return the suggestions as rows of a table."""
        return Rows(self.suggestions, Suggestion)


def unblock(trial: Trial, pods: Sequence[Pod], catalogue: Sequence[Node] = (), *, others: int = 0) -> Unblocking:
    """Return suggestions to get some pods placed.

    Args:
        trial: the cluster.
        pods: the pods of one workload, or a single pod; without nodes.
        catalogue: a node for each available shape; by default the shapes of the cluster.
        others: the number of other waiting pods, to mention in the limits.

    Raises:
        InputError: no profile has a pod's scheduler name.
    """
    trial.profile(pods[0])
    before = trial.trials
    now = trial.attempt(pods)
    unplaced = [pod for pod, place in zip(pods, now.placed, strict=True) if not place.node]
    # The largest group of equal pods first, because the suggestions are for the reason of the first pod.
    groups = sorted(equal_pods(unplaced), key=lambda group: -len(group))
    waiting = list(chain(*groups))
    keys = [pod.key for pod in pods]
    if not waiting:
        return Unblocking(
            verdict=_fitting(now), pods=keys, waiting=[], fits=True, cause=None, suggestions=[], trials=1, limits=[]
        )
    # Pods that fit take room from those that don't, so schedule them first.
    with trial.after([pod for pod, place in zip(pods, now.placed, strict=True) if place.node]):
        diagnosis = diagnose_pod(trial, waiting[0])
        different = other_reasons(trial, groups, diagnosis.cause.summary)
        ungated = with_spec(waiting[0], scheduling_gates=())
        searched = diagnose_pod(trial, ungated) if waiting[0].spec.scheduling_gates else diagnosis
    ungating = tuple(gate_steps(waiting[0]))
    search = _Search(trial, searched, pods, now.count, ShapeCatalogue(trial, catalogue), ungating)
    found = search.run()
    limits = search.limits
    if ADDED_AFFINITY in diagnosis.cause.summary:
        limits.append(f"changes to the scheduler's configuration, such as to {ADDED_AFFINITY}, are not suggested")
    if others:
        first = f"{format_count(others, 'other pending pod')}, which may be scheduled first"
        limits.append(f"{first}, {is_or_are(others)} not considered")
    ranked = [replace(each, rank=place) for place, each in enumerate(found, start=1)]
    return Unblocking(
        verdict=_verdict(diagnosis, waiting, len(pods), ranked, different),
        pods=keys,
        waiting=[pod.key for pod in waiting],
        fits=False,
        cause=diagnosis.cause,
        suggestions=ranked,
        trials=trial.trials - before,
        limits=limits,
    )


def _fitting(now: TrialResult) -> str:
    first = now.placed[0]
    if len(now.placed) == 1:
        return f"{first.pod} fits now: it would go to {first.node}"
    return f"all {len(now.placed):,} pods fit now: {first.pod} would go to {first.node}"


def _verdict(
    diagnosis: PodDiagnosis, waiting: Sequence[Pod], asked: int, found: Sequence[Suggestion], different: str
) -> str:
    first, count = waiting[0].key, len(waiting)
    of = f"{count:,} of {format_count(asked, 'pending pod')}" if count < asked else f"{count:,} pending pods"
    several = f"{of}, such as {first}, {'fits' if count == 1 else 'fit'} on no node"
    state = "gated" if GATES in diagnosis.matrix.whole else "pending"
    best = ("if not, best" if diagnosis.cause.is_misspelt else "best") + (" for it" if different else "")
    also = f"; other pods wait for {different}" if different else ""
    end = f"{best}: {found[0].text}" if found else "nothing that was tried helps"
    return f"{f'{first} is {state}' if asked == 1 else several}: {diagnosis.cause.headline}; {end}{also}"


class _Search:
    """Tries steps one by one, then in pairs.

    Args:
        trial: the cluster.
        diagnosis: the first waiting pod without its gates, with the verdicts of all filters.
        pods: all pods in question.
        fit: the number of pods that fit without a change.
        shapes: the shapes of nodes that can be added.
        ungating: the step that removes the gates of the first waiting pod, if it has any. It gets no node before, so every
            trial includes this step.
    """

    def __init__(
        self,
        trial: Trial,
        diagnosis: PodDiagnosis,
        pods: Sequence[Pod],
        fit: int,
        shapes: ShapeCatalogue,
        ungating: tuple[Step, ...],
    ) -> None:
        self.limits: list[str] = []
        self._trial = trial
        self._diagnosis = diagnosis
        self._pods = pods
        self._fit = fit
        self._shapes = shapes
        self._budgets = DisruptionBudgets(trial.catalog)
        self._ungating = ungating
        self._waited: TrialResult | None = None
        self._steps: list[Step] = []

    def run(self) -> list[Suggestion]:
        """Return the suggestions that work, the least risky first."""
        diagnosis, trial = self._diagnosis, self._trial
        ungated = self._try_once(self._ungating, preempts=False) if self._ungating else None
        if ungated is not None and ungated.placed == ungated.waiting:
            return [ungated]
        if ungated is not None:
            found = [self._try(()) or ungated]
        else:
            found = [*self._by_preemption()] or [*self._by_terminating_pods()]
        found += self._try_all(chain(pod_steps(diagnosis, trial), node_steps(diagnosis, trial)), MAX_OF_KIND)
        found += self._try_all(move_steps(diagnosis, trial), MAX_OF_KIND)
        if not found:
            found += self._pairs()
        added = self._try_all(added_nodes(diagnosis.pod, self._shapes, tailored=False), MAX_OF_KIND)
        if not added:
            added = self._try_all(added_nodes(diagnosis.pod, self._shapes, tailored=True), 2)
        if not found and not added:
            # A rule may reject new nodes too, so combine a new node with each of the other steps.
            added = self._pairs_with_nodes()
        found += added
        found = [each for each in found if not _is_needless(each, found)]
        # Replacing a pod of the same workload gains nothing: suggest it only if nothing else works.
        found = [each for each in found if not self._displaces_own_workload(each)] or found
        return sorted(found, key=lambda each: (RANKS[StepKind(each.kind)], len(each.evicted), each.cost, each.text))

    def _displaces_own_workload(self, found: Suggestion) -> bool:
        """Return whether a suggestion deprives a pod of the same workload of its node."""
        gone = (self._trial.bound(key) for key in found.evicted)
        return any(pod is not None and is_sibling(pod, self._diagnosis.pod) for pod in gone)

    def _by_preemption(self) -> Iterator[Suggestion]:
        """Yield the suggestion to wait, if the scheduler will preempt other pods without any change."""
        done = self._try((Step(StepKind.WAIT, "wait", "DefaultPreemption", preempts=True),))
        if done is not None:
            yield done

    def _by_terminating_pods(self) -> Iterator[Suggestion]:
        """Yield the suggestion to wait, if terminating pods make room when they are gone, whatever their priority."""
        trial = self._trial
        found = self._without(pod for node in trial.nodes() for pod in terminating_pods(node, trial))
        if found is None:
            return
        # Fewer pods may be enough: those on the nodes that the pods in question get.
        nodes = {each.node for each in found[0].placed}
        there = (node for node in trial.nodes() if node.metadata.name in nodes)
        fewer = self._without(pod for node in there for pod in terminating_pods(node, trial))
        result, keys = fewer or found
        step = Step(StepKind.WAIT, "wait", "")
        yield self._suggestion([step], self._pods, replace(result, ended=keys), [])

    def _without(self, pods: Iterable[Pod]) -> tuple[TrialResult, list[str]] | None:
        """Return the result of a trial without some pods, and their keys; None if no more of the pods in question fit then."""
        trial, keys = self._trial, [pod.key for pod in pods]
        with trial.undone():
            for key in keys:
                trial.remove_pod(key)
            result = trial.attempt(self._pods) if keys else None
        return None if result is None or result.count <= self._fit else (result, keys)

    def _try_all(self, steps: Iterable[Step], most: int) -> list[Suggestion]:
        """Return suggestions for the steps that work, at most `most` of each kind, without steps that do more than necessary."""
        counts = Counter[str]()
        enough: list[Step] = []
        found: list[Suggestion] = []
        for step in steps:
            if step.kind is not StepKind.ADD_NODE:
                self._steps.append(step)
            if counts[step.kind] >= most or any(includes((step,), (each,)) for each in enough):
                continue
            done = self._try((step,))
            # Whether pods move or become pending is known only after the trial.
            if done is not None and counts[done.kind] < most:
                counts[done.kind] += 1
                found.append(done)
                if done.kind != StepKind.EVICT.value:
                    enough.append(step)
        return found

    # --- pairs --------------------------------------------------------------------------------------------------------

    def _pairs(self) -> list[Suggestion]:
        """Return suggestions for pairs of steps that work, among those that resolve different filters on the same nodes."""
        pairs = sorted(
            (pair for pair in combinations(self._steps, 2) if _combine_well(*pair)),
            key=lambda pair: (max(RANKS[step.kind] for step in pair), sum(step.cost for step in pair)),
        )
        if len(pairs) > MAX_PAIRS:
            self.limits.append(f"{MAX_PAIRS} of {len(pairs):,} pairs of changes were tried")
        else:
            and_pairs = f" and {format_count(len(pairs), 'pair')} of them" if pairs else ""
            self.limits.append(f"only single changes{and_pairs} were tried")
        return self._try_pairs(pairs[:MAX_PAIRS])

    def _try_pairs(self, pairs: Iterable[tuple[Step, Step]]) -> list[Suggestion]:
        """Return suggestions for the first pairs that work, without pairs that do more than necessary."""
        enough: list[tuple[Step, Step]] = []
        found: list[Suggestion] = []
        for pair in pairs:
            if any(includes(pair, each) for each in enough):
                continue
            done = self._try(pair)
            if done is not None:
                found.append(done)
                if done.kind != StepKind.EVICT.value:
                    enough.append(pair)
                if len(found) == MAX_OF_KIND:
                    break
        return found

    def _pairs_with_nodes(self) -> list[Suggestion]:
        nodes = list(added_nodes(self._diagnosis.pod, self._shapes, tailored=True))[:MAX_NODES_IN_PAIRS]
        return self._try_pairs(
            [(node, step) for node in nodes for step in self._steps if not step.edit_nodes][:MAX_PAIRS]
        )

    # --- one trial ----------------------------------------------------------------------------------------------------

    def _try(self, steps: Sequence[Step]) -> Suggestion | None:
        """Return a suggestion if these steps get another pod placed, if necessary with preemption. Gates are removed, too."""
        steps = (*self._ungating, *steps)
        if any(step.preempts for step in steps):
            return self._try_once(steps, preempts=True)
        found = self._try_once(steps, preempts=False)
        if found is not None and (more := self._more_nodes(steps, found)) is not None:
            steps = (*steps, more)
            found = self._try_once(steps, preempts=False)
        if not self._may_preempt or (found is not None and found.placed == found.waiting):
            return found
        # kube-scheduler preempts for the pods that still wait.
        return self._try_once(steps, preempts=True, helps=found is not None)

    @cached_property
    def _may_preempt(self) -> bool:
        """Return whether the pod may preempt any pod."""
        spec = self._diagnosis.pod.spec
        return spec.preemption_policy != "Never" and self._trial.state.has_pods_below(spec.priority or 0)

    def _try_once(self, steps: Sequence[Step], *, preempts: bool, helps: bool = False) -> Suggestion | None:
        """Return a suggestion if these steps get another pod placed, and no pod of equal or higher priority loses its node.

        `helps`: whether they place a pod without preemption. Then the scheduler's preemption may break disruption budgets.
        """
        trial = self._trial
        pods = [edited(pod, steps) for pod in self._pods]
        result = trial.attempt(pods, changes_of(steps, trial), preempts=preempts)
        if result.count <= self._fit:
            return None
        waits, known = any(step.kind is StepKind.WAIT for step in steps), self._waited
        if waits:
            known, self._waited = None, result
        elif preempts and known is not None and _gains_nothing(result, known):
            # The scheduler preempts these pods without the steps, too.
            return None
        if back := _back(steps, result, trial):
            # A pod that comes back need not leave. If it has to, for a moment, its replacement may be faster than this pod.
            fewer = [
                without_evictions(step, back) for step in steps if not step.evicts or not back.issuperset(step.evicts)
            ]
            return self._try_once(fewer, preempts=preempts, helps=helps) if any(step.evicts for step in fewer) else None
        own = pods[0].spec.priority or 0
        gone = [info for each in result.displaced if (info := trial.state.pods.get(each.pod)) is not None]
        left = [each.pod for each in result.displaced if not each.node]
        if any(info.priority >= own for info in gone if info.key in left):
            return None
        breaks = preempts and self._breaks_budgets(gone, known.victims if known is not None else ())
        if breaks and not (waits or helps):
            return None
        found = self._suggestion(steps, pods, result, left)
        if breaks:
            # Preemption violates budgets if it finds no other way, which deserves a warning.
            found = replace(found, kind=StepKind.EVICT.value, text=f"{found.text}, and breaks a disruption budget")
        return found

    def _breaks_budgets(self, gone: Iterable[PodInfo], known: Sequence[str]) -> bool:
        """Return whether the loss of pods breaks a disruption budget, excluding pods that the scheduler preempts anyway."""
        ordered = sorted(gone, key=lambda info: info.key not in known)
        violations = zip(ordered, self._budgets.violated_by(ordered), strict=True)
        return any(violates and info.key not in known for info, violates in violations)

    def _more_nodes(self, steps: Sequence[Step], found: Suggestion) -> Step | None:
        """Return the step that adds more nodes of the same shape, if steps add a node, pods still wait, and more nodes help."""
        step = next((each for each in steps if each.copies is not None), None)
        if step is None or found.placed == found.waiting:
            return None
        wanted = min(-(-(len(self._pods) - self._fit) // found.placed), MAX_ADDED_NODES)
        more, result = self._with_copies(steps, step, wanted)
        used = {each.node for each in result.placed}
        idle = sum(isinstance(item, Node) and item.metadata.name not in used for item in more.adds)
        # Pods of the workload may wait for another reason, which these nodes don't remove. Each new node helps some pod.
        enough = min(wanted - idle, result.count - self._fit)
        if enough < wanted:
            fewer, same = self._with_copies(steps, step, enough)
            more, result = (fewer, same) if same.count >= result.count else (more, result)
        return more if result.count - self._fit > found.placed else None

    def _with_copies(self, steps: Sequence[Step], step: Step, count: int) -> tuple[Step, TrialResult]:
        """Return the step that adds all but the first of some new nodes like that of a step, and the result of a trial with it."""
        assert step.copies is not None
        adds = tuple(item for number in range(1, count) for item in step.copies(number))
        text = f"add {format_count(count - 1, 'more node')} of the same shape"
        more = Step(step.kind, text, step.lifts, adds=adds)
        pods = [edited(pod, steps) for pod in self._pods]
        return more, self._trial.attempt(pods, changes_of([*steps, more], self._trial))

    def _suggestion(
        self, steps: Sequence[Step], pods: Sequence[Pod], result: TrialResult, left: Sequence[str]
    ) -> Suggestion:
        trial = self._trial
        node = next((each.node for each in result.placed if each.node and each.pod == self._diagnosis.pod.key), "")
        making_room = map(trial.node_of, (*result.victims, *result.ended))
        nodes = [name for name in dict.fromkeys(making_room) if name] or [node]
        kinds = [StepKind.EVICT if step.kind is StepKind.MOVE and left else step.kind for step in steps]
        waited = self._waited.victims if self._waited is not None else ()
        texts = [step_text(step, kind, result, left, nodes) for step, kind in zip(steps, kinds, strict=True)]
        risks = [step.risk or RISKS[kind] for step, kind in zip(steps, kinds, strict=True)]
        if not frozenset(waited).issuperset(result.victims) and not any(step.preempts for step in steps):
            kinds.append(StepKind.EVICT)
            risks.append(RISKS[StepKind.EVICT])
        if result.victims and StepKind.WAIT not in kinds:
            texts[-1] += f"; it then preempts {named(result.victims)}"
        if result.ended and StepKind.WAIT not in kinds:
            texts[-1] += f"; it then waits for the end of {named(result.ended)}"
        changes = changes_of(steps, trial)
        changed = [new for _, new in changes if new is not None]
        edits = [pod for pod, old in zip(pods, self._pods, strict=True) if pod != old]
        return Suggestion(
            rank=0,
            kind=max(kinds, key=lambda kind: RANKS[kind]).value,
            text=format_list(texts),
            risk="; ".join(dict.fromkeys(risks)),
            cost=round(min(sum(step.cost for step in steps) / len(steps) + (0.5 if len(texts) > 1 else 0.0), 1.0), 4),
            node=node,
            placed=result.count - self._fit,
            waiting=len(result.placed) - self._fit,
            moved=[each for each in result.displaced if each.node],
            evicted=list(left),
            commands=[command for step in steps for command in step.commands],
            objects=[encode(item) for item in (*changed, *edits)],
            deleted=[key for step in steps for key in step.evicts],
            ended=list(result.ended),
        )


def _gains_nothing(result: TrialResult, waited: TrialResult) -> bool:
    """Return whether the scheduler preempts the same pods, and places as many, without any change."""
    return result.count <= waited.count and frozenset(waited.victims).issubset(result.victims)


def _back(steps: Sequence[Step], result: TrialResult, trial: Trial) -> frozenset[str]:
    """Return the pods that steps evict, but that come back to their node, so that they need not leave it."""
    evicted = {key for step in steps for key in step.evicts}
    same = (each.pod for each in result.displaced if each.node and each.node == trial.node_of(each.pod))
    return frozenset(key for key in same if key in evicted)


def _is_needless(found: Suggestion, others: Sequence[Suggestion]) -> bool:
    """Return whether a suggestion gains nothing over waiting.

    It raises the priority, or waits for the same terminating pods after a change.
    """
    waits = [each for each in others if each.kind == StepKind.WAIT.value]
    if found.kind == StepKind.PRIORITY.value and any(each.placed >= found.placed for each in waits):
        return True
    ended = set(found.ended)
    return found.kind != StepKind.WAIT.value and bool(ended) and any(ended >= set(each.ended) for each in waits)


def _combine_well(first: Step, second: Step) -> bool:
    """Return whether two steps can help together: they resolve different filters, and are not meant for different nodes."""
    if first.lifts and first.lifts == second.lifts:
        return False
    if first.nodes is not None and second.nodes is not None and not first.nodes & second.nodes:
        return False
    return not (first.preempts and second.preempts)
