"""The PreBind phase of a pod's binding, which a preemption can cancel (PodInPreBind upstream)."""

from __future__ import annotations

from msgspec import Struct

PREEMPTED = "preempted by DefaultPreemption"
"""The error of a canceled phase."""


class PreBind(Struct, gc=False):
    """Whether the PreBind phase of a pod has ended or is canceled; it cannot be both."""

    is_finished: bool = False
    is_canceled: bool = False

    def cancel(self) -> bool:
        """Cancel the phase; return False if it has finished, and the pod is being bound."""
        self.is_canceled = not self.is_finished
        return self.is_canceled

    def finish(self) -> bool:
        """End the phase before the pod is bound; return False if it is canceled, and the pod must not be bound."""
        self.is_finished = not self.is_canceled
        return self.is_finished
