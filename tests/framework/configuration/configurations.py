"""Read short configuration texts in tests: a common header, followed by the part under test."""

from bayplan.framework.configuration.loading import Examination, examine_configuration
from bayplan.framework.feature_gates import FeatureGates

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
JSON_HEADER = '"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"'


def examine(body: str, **gates: bool) -> Examination:
    """Examine a configuration that consists of the header and `body`."""
    return examine_configuration(HEADER + body, feature_gates=FeatureGates.from_mapping(gates))


def examine_args(plugin: str, args: str, **gates: bool) -> Examination:
    """Examine a configuration with the arguments `args`, in flow YAML, for one plugin."""
    return examine(f"profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n", **gates)
