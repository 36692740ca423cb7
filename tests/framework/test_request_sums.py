"""The number of times that upstream sums up a pod's requests, by profile, since this depends on the profile's plugins."""

from __future__ import annotations

import pytest

from bayplan.engine.assemble import assemble_scheduler
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.plugins.registry import in_tree_registry


@pytest.mark.parametrize(
    ("off", "gates", "runs", "want"),
    [
        pytest.param([], {}, 1, (2, 4), id="the filters of resources and devices, then CPU and memory in the balance"),
        pytest.param([], {"DRAExtendedResource": False}, 1, (1, 3), id="devices look only for extended resources"),
        pytest.param(["NodeResourcesBalancedAllocation"], {}, 1, (2, 2), id="no plugin balances"),
        pytest.param(["NodeResourcesFit"], {}, 1, (1, 3), id="no plugin looks for room"),
        pytest.param([], {}, 2, (4, 6), id="every PreFilter twice, as in recordings"),
    ],
)
def test_request_sums_are_counted_over_the_plugins_of_a_profile(
    off: list[str], gates: dict[str, bool], runs: int, want: tuple[int, int]
) -> None:
    feature_gates = FeatureGates.from_mapping(gates)
    profile = {"schedulerName": "s", "plugins": {"multiPoint": {"disabled": [{"name": name} for name in off]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    configuration = load_configuration(document, feature_gates=feature_gates)
    made = assemble_scheduler(configuration, in_tree_registry(), feature_gates=feature_gates).profiles["s"]
    made.count_request_sums(runs)
    assert (made.plugins["ImageLocality"].earlier_sums, made.sums_before_binding) == want
