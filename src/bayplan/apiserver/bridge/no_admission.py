"""Admission of controllers' pods over the API: none, since the API admits a pod when it is created."""

from __future__ import annotations

from bayplan.cluster.admission import PodAdmission
from bayplan.objects.pod import Pod, PodSpec


class NoAdmission(PodAdmission):
    """Leave templates unchanged: the API admits the pod when it is created."""

    def admit(self, pod: Pod) -> PodSpec:
        """Return the spec unchanged."""
        return pod.spec

    def charge(self, pod: Pod) -> None:
        """Leave quotas to the API."""
