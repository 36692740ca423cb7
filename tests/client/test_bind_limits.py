"""The time limits of a pod's wait for volumes and devices are configurable."""

from __future__ import annotations

import pytest

from bayplan.client.pre_bind import BindLimits, bind_limits
from bayplan.client.requests import ApiResponse, path_of
from bayplan.engine.actions import Bind, Update
from bayplan.framework.configuration.loading import load_configuration
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.plugins.pod_claims import SELECTED_NODE
from bayplan.plugins.registry import in_tree_registry
from tests.client.exchange_host import Host, pod

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: usual
  - schedulerName: hasty
    pluginConfig:
      - {name: VolumeBinding, args: {bindTimeoutSeconds: 2}}
      - {name: DynamicResources, args: {bindingTimeout: 1m30s}}
"""


def test_each_profile_has_its_own_limits() -> None:
    points = in_tree_registry().extension_points_for_configuration
    configuration = load_configuration(CONFIGURATION, extension_points_of=points)
    want = {"usual": BindLimits(600.0, 600 * 10**9), "hasty": BindLimits(2.0, 90 * 10**9)}
    assert bind_limits(configuration.profiles) == want


@pytest.mark.parametrize(("seconds", "pauses"), [(0.0, 0), (2.0, 6), (600.0, 604)])
def test_a_pod_stops_waiting_for_its_volumes_after_the_limit(seconds: float, pauses: int) -> None:
    metadata = ObjectMeta(name="c", namespace="n", annotations={SELECTED_NODE: "n1"})
    claim, node = PersistentVolumeClaim(metadata=metadata), Node(metadata=ObjectMeta(name="n1"))
    path = path_of(PersistentVolumeClaim, "n", "c")
    host = Host({f"GET {path}": [ApiResponse(200, b'{"metadata": {}}')]}, (claim, node, pod()))
    host.limits = BindLimits(volume_seconds=seconds)
    log = host.execute(Update(pod(), "n1", claim), Bind(pod(), "n1"))
    assert log[-1] == "PreBind of n/p failed in VolumeBinding: binding volumes: context deadline exceeded"
    assert host.pauses == pauses
