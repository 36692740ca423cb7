"""CheckVolumeBinding: the pod's volumes must be accessible from the node, or can be bound or provisioned there.

The choice of volumes is that of VolumeBinding; the preceding checks, and some errors instead of rejections, are those of 1.16.
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
from bayplan.plugins.volume_binding.solve import VolumeNeeds, sort_claims
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState

REASONS = {NODE_CONFLICT: VOLUME_NODE_CONFLICT, BIND_CONFLICT: VOLUME_BIND_CONFLICT}


class CheckVolumeBinding(VolumeBinding):
    """Rejects nodes on which the pod's volumes cannot be bound, and reserves the volumes of the chosen node.

    Params: the params of VolumeBinding, or the text of an error with which every node fails.
    """

    name = "CheckVolumeBinding"
    migration = False

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Sort the claims; SKIP pods without."""
        self._pre_filters = True
        if not spec.has_claims:
            return SKIP
        for volume in spec.volumes:
            key = f"{spec.namespace}/{volume.claim}"
            if volume.claim is not None and self._claims.get(key) is None:
                text = f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"'
                return PreFilterResult((text,))
        claims = sort_claims(spec, cluster.catalog, self._claims, self._volumes)
        if isinstance(claims, Status):
            return PreFilterResult((claims.message,))
        needs = self.needs(claims)
        state.write(STATE_KEY, needs)
        return PreFilterResult((needs,))

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule for the volumes."""
        return ReachableVolumes(self, cluster)

    def codes(self, params: Params) -> Codes | int:
        """Return the conflicts of each node as flags, or the number of the error that all fail with."""
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
        """Return the volume conflicts on a node."""
        if verdict & ERROR_BIT:
            return super().reasons(spec, params, verdict)
        flags = verdict & ~UNRESOLVABLE_BIT
        return tuple(text for flag, text in REASONS.items() if flags & flag)


class ReachableVolumes(FilterRule):
    """The results of `CheckVolumeBinding.codes` for the params of this cycle: the volume of a node depends on all nodes."""

    def __init__(self, plugin: CheckVolumeBinding, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._plugin = plugin
        self._codes: Codes | int = 0

    def refresh(self) -> bool:
        """Compute the results again."""
        assert self.params is not None
        self._codes = self._plugin.codes(self.params)
        return True

    def filter(self, row: int) -> int:
        """Look up the verdict."""
        return self._codes if isinstance(self._codes, int) else int(self._codes[row])
