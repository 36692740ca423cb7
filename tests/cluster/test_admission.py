"""Admission keeps equal specs shared, and applies changes of priority classes."""

from __future__ import annotations

import pytest

from bayplan.base.errors import InputError
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.store import ObjectStore
from bayplan.objects.affinity import Affinity, PodAffinityTerm, PodAntiAffinity, TopologySpreadConstraint
from bayplan.objects.meta import LabelSelector, ObjectMeta
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.policy import PriorityClass


def admission(*classes: PriorityClass) -> PodAdmission:
    store = ObjectStore(RandomStreams(1).stream("uids"))
    for item in classes:
        store.add(item, 0)
    return PodAdmission(store)


def priority_class(name: str, value: int, *, default: bool = False) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default)


def test_pods_with_a_shared_spec_share_the_admitted_spec() -> None:
    spec = PodSpec()
    admit = admission().admit
    one, other = (admit(Pod(metadata=ObjectMeta(labels={"n": str(n)}), spec=spec)) for n in range(2))
    assert one is other
    assert (one.priority, one.scheduler_name, len(one.tolerations)) == (0, "default-scheduler", 2)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            PodSpec(
                topology_spread_constraints=(
                    TopologySpreadConstraint(
                        max_skew=1,
                        topology_key="zone",
                        when_unsatisfiable="DoNotSchedule",
                        label_selector=LabelSelector(),
                        match_label_keys=("n",),
                    ),
                )
            ),
            id="spreading",
        ),
        pytest.param(
            PodSpec(
                affinity=Affinity(
                    pod_anti_affinity=PodAntiAffinity(
                        required_during_scheduling_ignored_during_execution=(
                            PodAffinityTerm(
                                topology_key="zone", label_selector=LabelSelector(), mismatch_label_keys=("n",)
                            ),
                        )
                    )
                )
            ),
            id="affinity",
        ),
    ],
)
def test_match_label_keys_separate_specs_of_pods_with_different_labels(spec: PodSpec) -> None:
    admit = admission().admit
    first, second = {"n": "1"}, {"n": "2"}
    one = admit(Pod(metadata=ObjectMeta(labels=first), spec=spec))
    again = admit(Pod(metadata=ObjectMeta(labels=first), spec=spec))
    other = admit(Pod(metadata=ObjectMeta(labels=second), spec=spec))
    assert one is again
    assert one != other


def test_forget_rereads_the_priority_classes() -> None:
    store = ObjectStore(RandomStreams(1).stream("uids"))
    admit = PodAdmission(store)
    spec = PodSpec()
    assert admit.admit(Pod(spec=spec)).priority == 0
    store.add(priority_class("usual", 7, default=True), 0)
    version = admit.version
    admit.forget()
    assert admit.version != version
    assert admit.admit(Pod(spec=spec)).priority == 7


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("", 3, id="the global default"),
        pytest.param("high", 1000, id="a class"),
        pytest.param("system-node-critical", 2_000_001_000, id="a class that every cluster has"),
    ],
)
def test_a_pod_gets_the_priority_of_its_class_or_the_global_default(name: str, want: int) -> None:
    admit = admission(priority_class("high", 1000), priority_class("usual", 3, default=True))
    assert admit.admit(Pod(spec=PodSpec(priority_class_name=name))).priority == want


def test_an_unknown_priority_class_raises_input_error() -> None:
    with pytest.raises(InputError, match="PriorityClass"):
        admission().admit(Pod(spec=PodSpec(priority_class_name="none")))
