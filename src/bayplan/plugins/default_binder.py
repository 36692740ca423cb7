"""DefaultBinder: binds every pod through the API. The plugin requests the binding; the host calls the API."""

from __future__ import annotations

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import BindPlugin
from bayplan.framework.status import SUCCESS, Status
from bayplan.objects.pod import Pod


class DefaultBinder(BindPlugin[None]):
    """Binds every pod."""

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SUCCESS, which lets the host bind the pod."""
        return SUCCESS
