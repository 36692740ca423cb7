"""The cluster autoscaler as an agent of a simulation: each scan adds nodes for waiting pods, or removes unneeded nodes.

It scans only if something has changed since the last scan, or at a time that the last scan determined: other scans
would find nothing new. To predict placements, it runs the real scheduler in a fork; upstream runs the scheduler's
filters.

Left out: node auto-provisioning, balancing of similar groups, unready nodes, failed scale-ups, limits on cores and
memory.

Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.answers.daemon_pods import daemon_models, with_daemons
from bayplan.answers.question_cluster import QuestionCluster, SchedulerFactory
from bayplan.answers.trial import Trial
from bayplan.autoscaling.configuration import AutoscalerConfiguration, NodeGroup, node_of
from bayplan.autoscaling.consolidation import Consolidation
from bayplan.autoscaling.expander import Option, best_option
from bayplan.autoscaling.scale_down import ScaleDown
from bayplan.base.go_text.times import parse_time_ns
from bayplan.base.random_streams import RandomStreams
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, not_scheduled
from bayplan.objects.requests import Amounts, accounted_requests, node_amounts
from bayplan.sim.operations import Apply, Operation
from bayplan.sim.scaling import GROUP_LABEL, NodeLifetime, ScalingEvent, ScalingKind, ScalingSummary, group_costs
from bayplan.sim.simulator import Simulator


class ClusterAutoscaler:
    """The autoscaler of one simulation; see `bayplan.sim.agents.Agent`.

    Args:
        configuration: the options and node groups.
        simulator: the simulator of the cluster.
        scheduler: returns the factory of the schedulers for trials; called at each scan.

    Attributes:
        events: the scaling events, in order.
    """

    def __init__(
        self, configuration: AutoscalerConfiguration, simulator: Simulator, scheduler: Callable[[], SchedulerFactory]
    ) -> None:
        self.configuration = configuration
        self.events: list[ScalingEvent] = []
        self._simulator = simulator
        self._scheduler = scheduler
        self._draw = RandomStreams(simulator.seed).stream("autoscaler.expander").random
        self._scanned_changes = -1
        self._next_scan_ns = simulator.start_ns
        self._starting: dict[str, tuple[int, Node]] = {}
        self._names: dict[str, int] = {}
        self._waits_until_ns: int | None = None
        self._last_added_ns: int | None = None
        self._scale_down = ScaleDown(configuration, self.events)
        self._consolidation: Consolidation | None = None
        if configuration.disruption is not None:
            self._consolidation = Consolidation(
                configuration, self.events, lambda: simulator.pods, lambda: simulator.nodes
            )

    # --- times of scans -----------------------------------------------------------------------------------------------

    def next_wakeup_ns(self, changes: int) -> int | None:
        """Return the time of the next scan that may find something new; None if nothing has changed and no time is known."""
        if changes != self._scanned_changes:
            return self._on_grid(self._simulator.now_ns)
        if self._waits_until_ns is None:
            return None
        return self._on_grid(self._waits_until_ns)

    def _on_grid(self, time_ns: int) -> int:
        """Return the time of the first future scan that is not before a given time."""
        interval_ns, start_ns = self.configuration.scan_interval_ns, self._simulator.start_ns
        steps = -(-(time_ns - start_ns) // interval_ns)
        return max(start_ns + steps * interval_ns, self._next_scan_ns)

    def endless_reason(self, given_ns: int) -> str:
        """Return "": without outside changes, scaling always ends."""
        return ""

    # --- a scan -------------------------------------------------------------------------------------------------------

    def act(self, now_ns: int, changes: int) -> Sequence[tuple[int, Operation]]:
        """Scan the cluster; return the operations that add and remove nodes."""
        self._next_scan_ns = now_ns + self.configuration.scan_interval_ns
        self._waits_until_ns = None
        store = self._simulator.cluster.store
        self._starting = {name: each for name, each in self._starting.items() if name not in store.nodes}
        objects = [item for kind in store.kinds() for item in store.all(kind)]
        cluster = QuestionCluster(objects, self._scheduler(), now_ns=now_ns, seed=self._simulator.seed)
        found = self._scale_up(cluster, now_ns)
        if self._consolidation is not None:
            found += self._consolidate(self._consolidation, cluster, now_ns, grows=bool(found))
        elif not found and self.configuration.options.scale_down_enabled:
            counts = self._sizes()
            added_ns = self._last_added_ns
            found = self._scale_down.run(cluster, now_ns, counts, added_ns, starting=bool(self._starting))
            self._wait_until(self._scale_down.next_ns)
        # The operations of this scan are changes, too, which the next scan sees.
        self._scanned_changes = changes
        return found

    def _consolidate(
        self, consolidation: Consolidation, cluster: QuestionCluster, now_ns: int, *, grows: bool
    ) -> list[tuple[int, Operation]]:
        """Continue the current command, or begin the next one if no node is starting."""
        found = consolidation.continue_command(cluster, now_ns)
        command = None
        if not grows and not self._starting:
            command = consolidation.plan(cluster, now_ns, self._sizes())
        if command is not None:
            replacement = ""
            if command.replacement is not None:
                pods = [pod.key for each in command.candidates for pod in each.moving]
                names = ", ".join(each.name for each in command.candidates)
                found += self._add(command.replacement, 1, pods, now_ns, f"replaces {names}")
                replacement = self.events[-1].nodes[0]
            found += consolidation.begin(command, replacement, now_ns)
        self._wait_until(consolidation.next_ns)
        if consolidation.is_busy:
            self._wait_until(now_ns + self.configuration.scan_interval_ns)
        return found

    def _wait_until(self, time_ns: int | None) -> None:
        if time_ns is not None and (self._waits_until_ns is None or time_ns < self._waits_until_ns):
            self._waits_until_ns = time_ns

    def _sizes(self) -> dict[str, int]:
        return {group.name: self._size(group) for group in self.configuration.groups}

    def _size(self, group: NodeGroup) -> int:
        """Return the number of nodes of a group, including starting ones."""
        nodes = [*self._simulator.cluster.store.nodes.values(), *(node for _, node in self._starting.values())]
        return sum(node.metadata.labels.get(GROUP_LABEL) == group.name for node in nodes)

    def summary(self, lifetimes: Sequence[NodeLifetime], end_ns: int) -> ScalingSummary:
        """Return the scaling events, and the costs of the groups' nodes until the end of a run."""
        prices = {group.name: group.price for group in self.configuration.groups}
        return ScalingSummary(events=self.events, costs=group_costs(lifetimes, prices, end_ns))

    # --- scale-up -----------------------------------------------------------------------------------------------------

    def _scale_up(self, cluster: QuestionCluster, now_ns: int) -> list[tuple[int, Operation]]:
        """Add nodes to the groups below their minimum size, and to one group that could take waiting pods."""
        below = [(group, group.min_size - self._size(group)) for group in self.configuration.groups]
        found = [
            operation
            for group, missing in below
            if missing > 0
            for operation in self._add(group, missing, (), now_ns, "below its minimum size")
        ]
        waiting = self._waiting(cluster, now_ns)
        if not waiting:
            return found
        options = self._options(cluster, waiting)
        if options:
            nodes = len(cluster.all(Node))
            chosen = best_option(options, self.configuration.options, self._draw, cluster_nodes=nodes)
            found += self._add(chosen.group, chosen.nodes, chosen.pods, now_ns, "pending pods")
        return found

    def _waiting(self, cluster: QuestionCluster, now_ns: int) -> list[Pod]:
        """Return the pods that wait because no node fits, and that are old enough and not expendable."""
        cutoff = self.configuration.options.expendable_pods_priority_cutoff
        found: list[Pod] = []
        for pod in cluster.waiting.values():
            condition = not_scheduled(pod)
            unschedulable = condition is not None and condition.reason == "Unschedulable"
            if not unschedulable or (pod.spec.priority or 0) < cutoff or pod.status.nominated_node_name:
                continue
            old_enough_ns = _created_ns(pod, now_ns) + self.configuration.new_pod_delay_ns
            if old_enough_ns > now_ns:
                self._wait_until(old_enough_ns)
            else:
                found.append(pod)
        return found

    def _options(self, cluster: QuestionCluster, waiting: Sequence[Pod]) -> list[Option]:
        """Return an option for each group that could take waiting pods for which the starting nodes have no room."""
        daemons = daemon_models(cluster.state)
        with cluster.trial(preempts=False) as trial:
            for _, node in self._starting.values():
                trial.add_all(with_daemons(node, daemons))
            trial.add_all(waiting)
            trial.settle()
            served = [pod for pod in waiting if pod.key in trial.placed]
            left = [pod for pod in waiting if pod.key not in trial.placed]
        if not left:
            return []
        total = len(cluster.all(Node)) + len(self._starting)
        found = []
        for group in self.configuration.groups:
            room = group.max_size - self._size(group)
            if self.configuration.options.max_nodes_total:
                room = min(room, self.configuration.options.max_nodes_total - total)
            if room > 0:
                option = self._option(cluster, group, room, served, left, daemons)
                if option.pods:
                    found.append(option)
        return found

    def _option(
        self,
        cluster: QuestionCluster,
        group: NodeGroup,
        room: int,
        served: Sequence[Pod],
        waiting: Sequence[Pod],
        daemons: Sequence[Pod],
    ) -> Option:
        """Return the option to grow a group: nodes are added as long as each new node takes at least one waiting pod.

        Args:
            cluster: the current cluster.
            group: the group to grow.
            room: the maximum number of nodes to add.
            served: the pods that fit on starting nodes.
            waiting: the other waiting pods.
            daemons: see `daemon_models`.
        """
        with cluster.trial(preempts=False) as trial:
            for _, node in self._starting.values():
                trial.add_all(with_daemons(node, daemons))
            self._try(trial, served)
            before: frozenset[str] = frozenset()
            nodes = 0
            while nodes < room:
                trial.add_all(with_daemons(node_of(group, f"trial-{group.name}-{nodes}"), daemons))
                self._try(trial, [pod for pod in waiting if pod.key not in before])
                taken = frozenset(pod.key for pod in waiting if pod.key in trial.placed)
                if taken == before:
                    break
                before, nodes = taken, nodes + 1
                if len(taken) == len(waiting):
                    break
            pods = [pod for pod in waiting if pod.key in before]
            requested: dict[str, int] = {}
            for pod in pods:
                for name, amount in accounted_requests(pod, cluster.state.request_gates).requests.items():
                    requested[name] = requested.get(name, 0) + amount
        offered: Amounts = {
            name: amount * nodes for name, amount in node_amounts(group.template.status.allocatable).items()
        }
        return Option(group=group, nodes=nodes, pods=[pod.key for pod in pods], offered=offered, requested=requested)

    def _try(self, trial: Trial, pods: Sequence[Pod]) -> None:
        """Schedule pods. Remove pods that were tried before and add them again, so that no backoff delays them."""
        for pod in pods:
            trial.remove_pod(pod.key)
        trial.add_all(pods)
        trial.settle()

    def _add(
        self, group: NodeGroup, count: int, pods: Sequence[str], now_ns: int, why: str
    ) -> list[tuple[int, Operation]]:
        ready_ns = now_ns + group.start_up_delay_ns
        found: list[tuple[int, Operation]] = []
        names = []
        for _ in range(count):
            node = node_of(group, self._new_name(group))
            names.append(node.metadata.name)
            self._starting[node.metadata.name] = (ready_ns, node)
            found.append((ready_ns, Apply(node)))
        self._last_added_ns = now_ns
        event = ScalingEvent(
            time_ns=now_ns, kind=ScalingKind.SCALE_UP, group=group.name, nodes=names, pods=list(pods), reason=why
        )
        self.events.append(event)
        return found

    def _new_name(self, group: NodeGroup) -> str:
        """Return the next name of a node of a group that no node has; names of removed nodes are not reused."""
        while True:
            number = self._names[group.name] = self._names.get(group.name, 0) + 1
            name = f"{group.name}-{number}"
            if name not in self._simulator.cluster.store.nodes:
                return name


def _created_ns(pod: Pod, now_ns: int) -> int:
    created = pod.metadata.creation_timestamp
    return parse_time_ns(created) if created is not None else now_ns
