"""CheckVolumeBinding: the pod's volumes must be accessible on the node, or can be bound or provisioned there.

Volumes are chosen as in VolumeBinding. The checks before that, and the problems that are errors instead of rejections,
are those of 1.16.
"""

from __future__ import annotations

from bayplan.classic.plugins.failure_reasons import VOLUME_BIND_CONFLICT, VOLUME_NODE_CONFLICT
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, PreFilterResult
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status
from bayplan.plugins.pod_claims import PodVolumes
from bayplan.plugins.volume_binding.plugin import STATE_KEY, VolumeBinding
from bayplan.plugins.volume_binding.solution import BIND_CONFLICT, NODE_CONFLICT, VOLUME_MISSING
from bayplan.plugins.volume_binding.solve import VolumeNeeds, classify_claims
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState

REASONS = {NODE_CONFLICT: VOLUME_NODE_CONFLICT, BIND_CONFLICT: VOLUME_BIND_CONFLICT}


class CheckVolumeBinding(VolumeBinding):
    """Rejects nodes on which the pod's volumes can't be bound, and reserves volumes on the chosen node.

    Params: those of VolumeBinding, or the text of an error that every node gets.
    """

    name = "CheckVolumeBinding"
    migration = False

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return the pod's needs, or an error, as params; SKIP for pods without claims."""
        self._pre_filters = True
        if not spec.has_claims:
            return SKIP
        for volume in spec.volumes:
            key = f"{spec.namespace}/{volume.claim}"
            if volume.claim is not None and self._claims.get(key) is None:
                text = f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"'
                return PreFilterResult((text,))
        claims = classify_claims(spec, cluster.catalog, self._claims, self._volumes)
        if isinstance(claims, Status):
            return PreFilterResult((claims.message,))
        needs = self.needs(claims)
        state.write(STATE_KEY, needs)
        return PreFilterResult((needs,))

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule that looks up the plugin's verdicts."""
        return ReachableVolumes(self, cluster)

    def codes(self, params: Params) -> Codes | int:
        """Return the verdict on each node, or one error verdict for all nodes."""
        self._filters = True
        claims = params[0]
        if isinstance(claims, str):
            return self._number_of(claims) | ERROR_BIT
        assert isinstance(claims, VolumeNeeds)
        verdicts = self.verdicts(params)
        missing = next((volume.missing for volume in claims.bound if volume.missing), None)
        if missing is not None:
            verdicts = verdicts.copy()
            lacking = (verdicts & (VOLUME_MISSING | ERROR_BIT)) == VOLUME_MISSING
            verdicts[lacking] = self._number_of(f'could not find v1.PersistentVolume "{missing}"') | ERROR_BIT
        return verdicts

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reasons for a verdict: volume conflicts, or an error."""
        if verdict & ERROR_BIT:
            return super().reasons(spec, params, verdict)
        flags = verdict & ~UNRESOLVABLE_BIT
        return tuple(text for flag, text in REASONS.items() if flags & flag)


class ReachableVolumes(FilterRule):
    """Looks up the results of `CheckVolumeBinding.codes`: a node's volumes depend on all nodes."""

    def __init__(self, plugin: CheckVolumeBinding, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._plugin = plugin
        self._codes: Codes | int = 0

    def refresh(self) -> bool:
        """Compute the results for the params of this cycle."""
        assert self.params is not None
        self._codes = self._plugin.codes(self.params)
        return True

    def filter(self, row: int) -> int:
        """Return the verdict on a node."""
        return self._codes if isinstance(self._codes, int) else int(self._codes[row])
