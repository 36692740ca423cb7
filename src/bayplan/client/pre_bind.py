"""The PreBind phase of a pod's binding, which a preemption can cancel (PodInPreBind upstream)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from bayplan.base.durations import SECOND_NS
from bayplan.framework.configuration.plugin_arguments import DynamicResourcesArgs, VolumeBindingArgs
from bayplan.framework.configuration.profiles import ProfileConfiguration

PREEMPTED = "preempted by DefaultPreemption"
"""The error of a canceled phase."""


class BindLimits(Struct, frozen=True, gc=False):
    """Time limits of a pod's wait for volumes and devices; the defaults are kube-scheduler's.

    Attributes:
        volume_seconds: `bindTimeoutSeconds` of VolumeBinding.
        device_ns: `bindingTimeout` of DynamicResources.
    """

    volume_seconds: float = 600.0
    device_ns: int = 600 * SECOND_NS


DEFAULT_LIMITS = BindLimits()


def bind_limits(profiles: Iterable[ProfileConfiguration]) -> dict[str, BindLimits]:
    """Return the limits that profiles configure, by scheduler name."""
    found: dict[str, BindLimits] = {}
    for profile in profiles:
        seconds, device_ns = DEFAULT_LIMITS.volume_seconds, DEFAULT_LIMITS.device_ns
        for arguments in profile.plugin_arguments.values():
            if isinstance(arguments, VolumeBindingArgs):
                seconds = float(arguments.bind_timeout_seconds)
            elif isinstance(arguments, DynamicResourcesArgs) and arguments.binding_timeout_ns is not None:
                device_ns = arguments.binding_timeout_ns
        found[profile.scheduler_name] = BindLimits(seconds, device_ns)
    return found


class PreBind(Struct, gc=False):
    """Whether the PreBind phase of a pod has ended or is canceled, never both; and its time limits."""

    limits: BindLimits = DEFAULT_LIMITS
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
