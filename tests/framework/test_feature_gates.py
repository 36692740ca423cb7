"""Feature gates: defaults, locks, groups, dependencies, and upstream's messages for gates that can't be set."""

import pytest

from bayplan.base.errors import ConfigurationError, InvariantError
from bayplan.framework.feature_gate_table import DEPENDENCIES, GATES
from bayplan.framework.feature_gates import FeatureGates, parse_feature_gates


@pytest.mark.parametrize(
    ("gate", "want"),
    [
        ("DynamicResourceAllocation", True),
        ("GangScheduling", False),
        ("SchedulerPopFromBackoffQ", True),
        ("TaintTolerationComparisonOperators", False),
        ("AllAlpha", False),
        ("AllBeta", False),
    ],
)
def test_an_unset_gate_has_the_default_of_the_release(gate: str, want: bool) -> None:
    assert FeatureGates().enabled(gate) is want


def test_default_gates_satisfy_all_dependencies() -> None:
    gates = FeatureGates()
    broken = [
        (gate, other)
        for gate, needed in DEPENDENCIES.items()
        for other in needed
        if gates.enabled(gate) and not gates.enabled(other)
    ]
    assert broken == []
    assert {gate for needed in DEPENDENCIES.values() for gate in needed} | set(DEPENDENCIES) <= set(GATES)


@pytest.mark.parametrize(
    ("values", "gate", "want"),
    [
        ({"StorageCapacityScoring": True}, "StorageCapacityScoring", True),
        ({"AllAlpha": True}, "StorageCapacityScoring", True),
        ({"AllAlpha": True}, "AllAlpha", True),
        ({"AllAlpha": True, "StorageCapacityScoring": False}, "StorageCapacityScoring", False),
        ({"AllAlpha": True}, "SchedulerPopFromBackoffQ", True),
        ({"AllBeta": False}, "SchedulerPopFromBackoffQ", False),
        ({"AllBeta": False, "SchedulerPopFromBackoffQ": True}, "SchedulerPopFromBackoffQ", True),
        ({"AllBeta": False}, "DynamicResourceAllocation", True),
        ({"DynamicResourceAllocation": True}, "DynamicResourceAllocation", True),
    ],
    ids=[
        "set by name",
        "set with all alphas",
        "the group itself is a gate",
        "a name beats the group",
        "the alphas leave betas alone",
        "the betas can be switched off",
        "a name beats the betas",
        "the betas leave stable gates alone",
        "a locked gate may be set to its default",
    ],
)
def test_gates_can_be_set_by_name_and_by_stage(values: dict[str, bool], gate: str, want: bool) -> None:
    assert FeatureGates.from_mapping(values).enabled(gate) is want


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({"Nope": True}, "unrecognized feature gate: Nope"),
        (
            {"DynamicResourceAllocation": False},
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            {"DynamicResourceAllocation": False, "KMSv1": True, "ImageVolume": False},
            "[cannot set feature gate DynamicResourceAllocation to false, feature is locked to true, "
            "cannot set feature gate ImageVolume to false, feature is locked to true]",
        ),
        (
            {"GangScheduling": True},
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            {"WorkloadAwarePreemption": True},
            "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]",
        ),
        (
            {"AllBeta": False, "UserNamespacesHostNetworkSupport": True},
            "UserNamespacesHostNetworkSupport is enabled, but depends on features that are disabled: "
            "[NodeDeclaredFeatures]",
        ),
        (
            {"DRAResourceClaimDeviceStatus": False},
            "[DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
            "[DRAResourceClaimDeviceStatus], DRAResourceClaimGranularStatusAuthorization is enabled, but depends on "
            "features that are disabled: [DRAResourceClaimDeviceStatus]]",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_invalid_gate_settings_are_refused(values: dict[str, bool], want: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        FeatureGates.from_mapping(values, where="--feature-gates")
    assert str(refused.value) == f"--feature-gates: {want}"


def test_gates_set_later_are_added_to_earlier_ones() -> None:
    before = FeatureGates.from_mapping({"GenericWorkload": True})
    after = before.with_values({"GangScheduling": True})
    assert (after.enabled("GangScheduling"), before.enabled("GangScheduling")) == (True, False)
    assert after.given() == {"GangScheduling": True, "GenericWorkload": True}
    assert repr(after) == "FeatureGates(GangScheduling=true,GenericWorkload=true)"


def test_gates_compare_by_effective_values() -> None:
    explicit = FeatureGates.from_mapping({"GangScheduling": False})
    assert explicit == FeatureGates()
    assert hash(explicit) == hash(FeatureGates())
    assert explicit != FeatureGates.from_mapping({"GenericWorkload": True})


def test_reading_an_unknown_gate_raises_invariant_error() -> None:
    with pytest.raises(InvariantError, match="no feature gate is called Nope"):
        FeatureGates().enabled("Nope")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", {}),
        ("A=true,B=0", {"A": True, "B": False}),
        (" A = T ,,B=FALSE", {"A": True, "B": False}),
        ("kube:A=true,kube:B=f", {"A": True, "B": False}),
        ("A=true,A=false", {"A": False}),
    ],
)
def test_parse_feature_gates_reads_the_option_value(text: str, want: dict[str, bool]) -> None:
    assert parse_feature_gates(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("A", "missing bool value for A"),
        (
            "A=yes",
            "invalid value of A=yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax; try 'A=true' or 'A=false'",
        ),
        ("other:A=true", "component not registered: other"),
        (
            "A=true,kube:B=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
    ],
)
def test_an_invalid_option_value_is_refused(text: str, want: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        FeatureGates.from_text(text)
    assert str(refused.value) == want
