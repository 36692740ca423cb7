"""Policy files: their settings, the defaults from the provider, and refused files."""

from __future__ import annotations

import pytest

from bayplan.base.errors import ConfigurationError
from bayplan.classic.algorithms import Algorithms
from bayplan.classic.assemble import assemble_classic_scheduler
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.policy import LabelPreference, LabelsPresence, Policy, RatioArguments, load_policy
from bayplan.engine.records import RecordLevel
from bayplan.framework.configuration.document import ExtenderManagedResource
from bayplan.testing.builders import make_pod
from tests.classic.cycles import Item, configured, cycle_of, node, only_predicate

POLICY = """\
kind: Policy
apiVersion: v1
predicates:
- {name: PodFitsResources}
- {name: Racks, argument: {labelsPresence: {labels: [rack], presence: true}}}
- {name: Together, argument: {serviceAffinity: {labels: [zone, rack]}}}
priorities:
- {name: MostRequestedPriority, weight: 3}
- {name: Apart, weight: 2, argument: {serviceAntiAffinity: {label: zone}}}
- {name: Fast, weight: 1, argument: {labelPreference: {label: ssd, presence: true}}}
- name: Full
  weight: 1
  argument:
    requestedToCapacityRatioArguments:
      shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
      resources: [{name: cpu, weight: 2}]
extenders:
- urlPrefix: http://127.0.0.1:8888/
  filterVerb: filter
  prioritizeVerb: rank
  weight: 5
  httpTimeout: 30000000000
  nodeCacheCapable: true
  ignorable: true
  managedResources: [{name: example.com/fpga, ignoredByScheduler: true}]
hardPodAffinitySymmetricWeight: 7
alwaysCheckAllPredicates: true
"""


def _algorithms(policy: Policy) -> Algorithms:
    return ClassicConfiguration(policy=policy).algorithms()


def _names(algorithms: Algorithms) -> tuple[list[str], dict[str, int]]:
    return [item.name for item in algorithms.predicates], {item.name: item.weight for item in algorithms.priorities}


def test_a_policy_is_loaded_with_all_its_arguments() -> None:
    policy = load_policy(POLICY.encode())
    assert policy.predicates is not None
    assert policy.priorities is not None
    resources, racks, together = policy.predicates
    assert (resources.name, resources.argument) == ("PodFitsResources", None)
    assert racks.argument is not None
    assert racks.argument.labels_presence == LabelsPresence(("rack",), True)
    assert together.argument is not None
    assert together.argument.service_affinity == ("zone", "rack")
    most, apart, fast, full = policy.priorities
    assert (most.weight, most.argument) == (3, None)
    assert apart.argument is not None
    assert apart.argument.service_anti_affinity == "zone"
    assert fast.argument is not None
    assert fast.argument.label_preference == LabelPreference("ssd", True)
    assert full.argument is not None
    assert full.argument.requested_to_capacity_ratio == RatioArguments(((0, 0), (100, 10)), (("cpu", 2),))
    assert policy.hard_pod_affinity_symmetric_weight == 7
    assert policy.always_check_all_predicates


def test_extenders_of_a_policy_are_loaded() -> None:
    (extender,) = load_policy(POLICY.encode()).extenders
    assert (extender.url_prefix, extender.filter_verb, extender.prioritize_verb) == (
        "http://127.0.0.1:8888/",
        "filter",
        "rank",
    )
    assert (extender.weight, extender.http_timeout_ns) == (5, 30_000_000_000)
    assert extender.node_cache_capable
    assert extender.ignorable
    assert extender.managed_resources == (ExtenderManagedResource("example.com/fpga", True),)


def test_a_policy_selects_predicates_and_priorities() -> None:
    predicates, priorities = _names(_algorithms(load_policy(POLICY.encode())))
    # Only predicates with a place in the order run. The mandatory ones are always included; those with custom names
    # come last and do not run.
    assert predicates == ["CheckNodeUnschedulable", "PodFitsResources", "PodToleratesNodeTaints", "Racks", "Together"]
    assert priorities == {"Apart": 2, "Fast": 1, "Full": 1, "MostRequestedPriority": 3}


def test_missing_policy_sections_use_the_default_provider() -> None:
    default = _names(ClassicConfiguration().algorithms())
    assert _names(_algorithms(Policy())) == default
    assert _names(_algorithms(Policy(predicates=())))[1] == default[1]
    assert _names(_algorithms(Policy(priorities=()))) == (default[0], {})
    assert _names(_algorithms(Policy(predicates=())))[0] == ["CheckNodeUnschedulable", "PodToleratesNodeTaints"]


def test_the_last_of_several_weights_counts() -> None:
    rules = [{"name": "EqualPriority", "weight": weight} for weight in (2, 5)]
    assert _names(configured(policy={"priorities": rules}).algorithms())[1] == {"EqualPriority": 5}


def test_a_policy_can_be_json_or_yaml() -> None:
    text = b'{"kind": "Policy", "apiVersion": "v1", "priorities": [{"name": "EqualPriority", "weight": 1}], "odd": 1}'
    assert load_policy(text) == load_policy(
        b"kind: Policy\napiVersion: v1\npriorities:\n- name: EqualPriority\n  weight: 1\n"
    )


def _refusal(document: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        _algorithms(load_policy(document.encode()))
    return str(refused.value)


START = "kind: Policy\napiVersion: v1\n"


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        pytest.param(
            "predicates: [{name: GeneralPredicatez}]",
            "p.yaml Invalid configuration: Predicate type not found for GeneralPredicatez; try GeneralPredicates",
            id="a misspelt predicate",
        ),
        pytest.param(
            "priorities: [{name: EqualPriorty, weight: 1}]",
            "p.yaml Invalid configuration: Priority type not found for EqualPriorty; try EqualPriority",
            id="a misspelt priority",
        ),
        pytest.param(
            "hardPodAffinitySymmetricWeight: 101",
            "p.yaml couldn't create scheduler from policy: invalid hardPodAffinitySymmetricWeight: 101, "
            "must be in the range 1-100",
            id="a weight out of range",
        ),
    ],
)
def test_errors_found_after_loading_contain_the_file_name(rules: str, want: str) -> None:
    policy = load_policy((START + rules).encode(), where="p.yaml")
    with pytest.raises(ConfigurationError) as refused:
        _algorithms(policy)
    assert str(refused.value) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("[", "invalid policy: "),
        ("[]", "invalid policy: couldn't get version/kind; json parse error"),
        ("apiVersion: v1", "invalid policy: Object 'Kind' is missing"),
        (
            "{kind: Policy, apiVersion: kubescheduler.config.k8s.io/v1}",
            'invalid policy: no kind "Policy" is registered for version "kubescheduler.config.k8s.io/v1"',
        ),
        (
            START + "predicates: [{name: Nope}]",
            "Invalid configuration: Predicate type not found for Nope",
        ),
        (
            START + "priorities: [{name: Nope, weight: 1}]",
            "Invalid configuration: Priority type not found for Nope",
        ),
        (
            START + "priorities: [{name: EqualPriority}]",
            "couldn't create scheduler from policy: "
            "Priority EqualPriority should have a positive weight applied to it or it has overflown",
        ),
        (
            START + "priorities: [{name: A, weight: 1, argument: {}}]",
            "Exactly 1 priority argument is required, numArgs: 0, Priority: A",
        ),
        (
            START + "predicates: [{name: A, argument: {serviceAffinity: {}, labelsPresence: {}}}]",
            "Exactly 1 predicate argument is required, numArgs: 2, Predicate: A",
        ),
        (
            START + "predicates: [{name: not_valid, argument: {serviceAffinity: {}}}]",
            "Algorithm name not_valid does not match the name validation regexp "
            '"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".',
        ),
        (
            START + "hardPodAffinitySymmetricWeight: 101",
            "couldn't create scheduler from policy: "
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
        ),
        (
            START + "extenders: [{bindVerb: a}, {bindVerb: b}]",
            "couldn't create scheduler from policy: Only one extender can implement bind, found 2",
        ),
        (
            START + "extenders: [{urlPrefix: http://x, prioritizeVerb: p}]",
            "couldn't create scheduler from policy: "
            "Priority for extender http://x should have a positive weight applied to it",
        ),
        (START + "predicates: 3", "invalid policy: v1.Policy.predicates: expected "),
        (START + "predicates: [3]", "invalid policy: v1.Policy.predicates: expected a list of objects"),
        (START + "priorities: [{name: A, weight: true}]", "invalid policy: v1.PolicyRule.weight: expected an integer"),
        (START + "alwaysCheckAllPredicates: x", "invalid policy: v1.Policy.alwaysCheckAllPredicates: expected "),
    ],
)
def test_an_invalid_policy_is_refused_with_upstreams_message(text: str, want: str) -> None:
    assert _refusal(text).startswith(want)


def test_multiple_problems_are_reported_together() -> None:
    reported = _refusal(START + "priorities: [{name: EqualPriority}, {name: ImageLocalityPriority, weight: -1}]")
    assert "Priority EqualPriority should" in reported
    assert "Priority ImageLocalityPriority should" in reported


# The effects of a Policy.


def _labelled(name: str, **labels: str) -> Item:
    return node(name).label(**labels)


def test_nodes_without_the_required_label_are_rejected() -> None:
    argument = {"labelsPresence": {"labels": ["rack"], "presence": True}}
    configuration = configured(policy=only_predicate("CheckNodeLabelPresence", argument))
    found = cycle_of([_labelled("n1", rack="r"), node("n2")], make_pod("p"), configuration)
    assert found.chosen == "n1"
    assert found.reasons("n2") == ["node(s) didn't have the requested labels"]


def test_a_predicate_with_a_custom_name_is_never_evaluated() -> None:
    argument = {"labelsPresence": {"labels": ["rack"], "presence": True}}
    found = cycle_of([node("n1"), node("n2")], make_pod("p"), configured(policy=only_predicate("Mine", argument)))
    assert found.feasible == ["n1", "n2"]


def test_a_label_priority_uses_the_name_in_the_policy() -> None:
    rule = {"name": "Fast", "weight": 4, "argument": {"labelPreference": {"label": "ssd", "presence": True}}}
    configuration = configured(policy={"predicates": [], "priorities": [rule]})
    found = cycle_of([_labelled("n1", ssd="yes"), node("n2")], make_pod("p"), configuration)
    assert found.table() == {"Fast": {"n1": 10, "n2": 0}}
    assert (found.result.common.total, found.chosen) == (40, "n1")


def test_all_nodes_are_tied_without_priorities() -> None:
    found = cycle_of([node("n1"), node("n2")], make_pod("p"), configured(policy={"priorities": []}))
    assert found.table() == {}
    assert len(found.result.common.ties) == 2


@pytest.mark.parametrize(
    ("check_all", "want"),
    [
        (False, "0/1 nodes are available: 1 Insufficient cpu."),
        (
            True,
            "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) had taints that the pod didn't tolerate, "
            "1 node(s) were unschedulable.",
        ),
    ],
)
def test_always_check_all_predicates_reports_all_failures(check_all: bool, want: str) -> None:
    rules = [{"name": name} for name in ("PodFitsResources", "PodToleratesNodeTaints")]
    full = node("n1", cpu="1").taint("dedicated", "x")
    if check_all:
        full = full.unschedulable()
    configuration = configured(policy={"predicates": rules, "alwaysCheckAllPredicates": check_all})
    assert cycle_of([full], make_pod("p").req(cpu="2"), configuration).message == want


@pytest.mark.parametrize(
    ("check_all", "want"),
    [
        pytest.param(False, ["PodFitsResources"], id="the first that failed"),
        pytest.param(True, ["PodFitsResources", "PodToleratesNodeTaints"], id="all with alwaysCheckAllPredicates"),
    ],
)
def test_a_decision_lists_the_predicates_that_failed(check_all: bool, want: list[str]) -> None:
    rules = [{"name": name} for name in ("PodFitsResources", "PodToleratesNodeTaints")]
    configuration = configured(policy={"predicates": rules, "alwaysCheckAllPredicates": check_all})
    scheduler = assemble_classic_scheduler(configuration, record_level=RecordLevel.FULL)
    for builder in (node("n1", cpu="1").taint("dedicated", "x"), make_pod("p").req(cpu="2")):
        scheduler.handle(None, builder.obj(), 0)
    scheduler.schedule_one(0)
    assert [status.plugin for status in scheduler.records.decision(0).failures(0)] == want
