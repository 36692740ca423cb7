"""The PreBind phase of a pod's binding, which a preemption can cancel (PodInPreBind upstream)."""

from __future__ import annotations

from msgspec import Struct

PREEMPTED = "preempted by DefaultPreemption"
"""The error of a canceled phase."""


class PreBind(Struct, gc=False):
    """Whether the PreBind phase of a pod has ended or is canceled, never both."""

    is_finished: bool = False
    is_canceled: bool = False

    def cancel(self) -> bool:
        """Cancel the phase, unless it has ended; return whether it is canceled."""
        self.is_canceled = not self.is_finished
        return self.is_canceled

    def finish(self) -> None:
        """End the phase, which must not be canceled: the pod is bound next."""
        assert not self.is_canceled
        self.is_finished = True
