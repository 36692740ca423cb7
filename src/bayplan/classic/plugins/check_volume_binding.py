"""CheckVolumeBinding: the pod's volumes must be accessible on the node, or can be bound or provisioned there.

Volumes are chosen as in VolumeBinding. The checks before that, and the problems that are errors instead of rejections,
are those of 1.16.
"""

from __future__ import annotations

from bayplan.classic.plugins.failure_reasons import VOLUME_BIND_CONFLICT, VOLUME_NODE_CONFLICT
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, PreFilterResult
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status
from bayplan.plugins.pod_claims import PodVolumes
from bayplan.plugins.volume_binding.plugin import STATE_KEY, VolumeBinding
from bayplan.plugins.volume_binding.solution import BIND_CONFLICT, NODE_CONFLICT, VOLUME_MISSING
from bayplan.plugins.volume_binding.solve import VolumeNeeds
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
        needs = self.needs(spec)
        if isinstance(needs, Status):
            return PreFilterResult((needs.message,))
        state.write(STATE_KEY, needs)
        return PreFilterResult((needs,))

    def verdicts(self, params: Params | None) -> Codes:
        """Return the verdicts of VolumeBinding, except that a missing volume is an error."""
        assert params is not None
        needs = params[0]
        if isinstance(needs, str):
            return self._everywhere(needs)
        assert isinstance(needs, VolumeNeeds)
        verdicts = super().verdicts(params)
        missing = next((volume.missing for volume in needs.bound if volume.missing), None)
        if missing is not None:
            verdicts = verdicts.copy()
            lacking = (verdicts & (VOLUME_MISSING | ERROR_BIT)) == VOLUME_MISSING
            verdicts[lacking] = self._texts.verdict(f'could not find v1.PersistentVolume "{missing}"', ERROR_BIT)
        return verdicts

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reasons for a verdict: volume conflicts, or an error."""
        if verdict & ERROR_BIT:
            return super().reasons(spec, params, verdict)
        flags = verdict & ~UNRESOLVABLE_BIT
        return tuple(text for flag, text in REASONS.items() if flags & flag)
