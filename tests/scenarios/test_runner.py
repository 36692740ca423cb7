"""Steps of scenarios, one action and one check at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.scenarios.runner import Outcome
from tests.scenarios.files import WEB, run, write

BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}
"""
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, "
    "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]}}"
)
ENDS = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {bayplan.io/run-time: 90s}}, "
    'spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}}'
)
TRACE = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-00001,100,100,0,0\n"

PASSING = [
    ("the cluster is scheduled before the first step", "- assert: [{placed: {pods: deployment/web, count: 3}}]"),
    ("all pods are meant without a target", "- assert: [{placed: {}}]"),
    (
        "an object that is created is scheduled before the next step",
        f"- create: [{POD % '1'}]\n- assert: [{{placed: {{pods: p}}}}]",
    ),
    ("manifests are created by their paths", "- create: [more.yaml]\n- assert: [{placed: {pods: more-1}}]"),
    (
        "an object that exists is changed by apply",
        "- apply: [less.yaml]\n- assert: [{placed: {pods: deployment/web, count: 1}}]",
    ),
    (
        "a workload is scaled",
        "- scale: {target: deployment/web, replicas: 5}\n- assert: [{placed: {pods: deployment/web, count: 5}}]",
    ),
    (
        "a strategic merge patch changes one container by its name",
        "- patch: {target: deployment/web, patch: {spec: {template: {spec: "
        "{containers: [{name: web, resources: {requests: {cpu: '5'}}}]}}}}}\n"
        "- assert: [{waiting: {pods: deployment/web, count: 1, reason: Insufficient cpu}}]",
    ),
    (
        "a JSON patch is a list of operations",
        "- patch: {target: node/n3, type: json, patch: [{op: replace, path: /metadata/labels/pool, value: blue}]}\n"
        "- assert: [{nodes: {nodes: 'label:pool=blue', count: 3}}]",
    ),
    (
        "a merge patch replaces lists",
        "- patch: {target: node/n1, type: merge, patch: {spec: {taints: [{key: k, effect: NoSchedule}]}}}\n"
        "- scale: {target: deployment/web, replicas: 11}\n- assert: [{waiting: {pods: deployment/web, atLeast: 1}}]",
    ),
    (
        "a patch removes finalizers",
        f"- create: [{POD.replace('name: p', 'name: p, finalizers: [example.com/hold]') % '1'}]\n"
        "- patch: {target: pod/p, type: merge, patch: {metadata: {finalizers: null}}}\n"
        "- delete: [pod/p]\n- wait: 1h\n- assert: [{placed: {pods: p, count: 0}}]",
    ),
    (
        "what a deleted object owns goes with it",
        "- delete: [deployment/web]\n- assert: [{evictions: {count: 0}}, {utilisation: {atMost: 0}}]",
    ),
    (
        "pods of a deleted node are gone",
        "- delete: [node/n3]\n- assert: [{nodes: {count: 2}}, {evictions: {count: 1}}, {placed: {count: 3}}, "
        "{placed: {pods: deployment/web}}]",
    ),
    ("a pattern names several objects", "- delete: ['node/n*']\n- assert: [{nodes: {count: 0}}]"),
    (
        "a drained node has no pods, and they come back elsewhere",
        "- drain: n1\n- assert: [{placed: {count: 3}}, {onNodes: {pods: deployment/web, nodes: 'n[23]'}}, {evictions: {count: 1}}]",
    ),
    (
        "a drain waits until a disruption budget allows it",
        "- apply: [budget.yaml]\n- scale: {target: deployment/web, replicas: 4}\n- drain: label:pool=blue\n"
        "- assert: [{onNodes: {pods: deployment/web, nodes: n3}}, {placed: {pods: deployment/web, count: 4}}]",
    ),
    (
        "a cordoned node takes no pods",
        "- cordon: '*'\n- scale: {target: deployment/web, replicas: 4}\n- assert: [{waiting: {count: 1}}]",
    ),
    (
        "an uncordoned node takes them",
        "- cordon: '*'\n- scale: {target: deployment/web, replicas: 4}\n- uncordon: n3\n"
        "- when: [{placed: {count: 4}}]\n  timeout: 1m",
    ),
    (
        "the pods of a failed zone are evicted after five minutes",
        "- at: 1h\n  fail: {zone: a}\n- after: 4m59s\n  assert: [{evictions: {count: 0}}]\n"
        "- after: 1s\n  assert: [{evictions: {count: 2}}, {onNodes: {pods: deployment/web, nodes: n3}}]",
    ),
    (
        "a rack that comes back in time keeps its pods",
        "- fail: {rack: r1}\n- after: 4m\n  restore: {rack: r1}\n- after: 1h\n  assert: [{evictions: {count: 0}}]",
    ),
    (
        "a restored node takes pods again",
        "- fail: {nodes: '*'}\n- scale: {target: deployment/web, replicas: 4}\n- assert: [{waiting: {count: 1}}]\n"
        "- restore: {nodes: n2}\n- when: [{placed: {count: 4}}]\n  timeout: 2m",
    ),
    (
        "pods that waited are tried again under another configuration",
        "- cordon: '*'\n- scale: {target: deployment/web, replicas: 4}\n- assert: [{waiting: {count: 1}}]\n"
        "- configure: careless.yaml\n"
        "- when: [{placed: {count: 4}}]\n  timeout: 1m",
    ),
    (
        "a step begins when its conditions are true",
        f"- create: [{ENDS}]\n- when: [{{placed: {{pods: p}}}}]\n- wait: settled\n- assert: [{{placed: {{pods: p}}}}]",
    ),
    ("time passes while a step waits", "- wait: 90s\n- at: 90s\n  assert: [{nodes: {count: 3}}]"),
    (
        "the waiting time of a pod that waits still counts",
        f"- create: [{POD % '9'}]\n- wait: 10m\n- assert: [{{waitingTime: {{pods: deployment/web, atMost: 0s}}}}]",
    ),
    (
        "pods are spread over a label",
        "- assert: [{spread: {over: topology.kubernetes.io/rack, maxSkew: 0, domains: 3}}]",
    ),
    (
        "a share of a resource is requested",
        "- assert: [{utilisation: {atLeast: 0.25, atMost: 0.25}}, {utilisation: {resource: pods, atMost: 0.01}}]",
    ),
]
FILES = {
    "more": POD.replace("name: p", "name: more-1") % "1",
    "less": WEB.replace("replicas: 3", "replicas: 1"),
    "budget": BUDGET,
    "packing": """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
        - pluginConfig:
          - name: NodeResourcesFit
            args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
        """,
    "careless": """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
        - plugins: {multiPoint: {disabled: [{name: NodeUnschedulable}, {name: TaintToleration}]}}
        """,
}


@pytest.mark.parametrize("steps", [pytest.param(case[1], id=case[0]) for case in PASSING])
def test_steps_with_true_assertions_pass(steps: str, tmp_path: Path) -> None:
    result = run(tmp_path, steps, files=FILES)
    assert [step for step in result.steps if step.outcome is not Outcome.PASSED] == []


FALSE = [
    (
        "pods that another configuration packs",
        "- configure: packing.yaml\n- scale: {target: deployment/web, replicas: 6}\n"
        "- assert: [{spread: {over: topology.kubernetes.io/rack, maxSkew: 2}}]",
        "a skew of at most 2 over topology.kubernetes.io/rack",
        "a skew of 3: r1: 1, r2: 1, r3: 4",
    ),
    (
        "pods that wait are explained",
        "- scale: {target: deployment/web, replicas: 13}\n- assert: [{placed: {}}]",
        "all 13 pods placed",
        "12 placed, 1 pending",
    ),
    ("a number that is not met", "- assert: [{placed: {atLeast: 4}}]", "at least 4 pods placed", "3 placed, 0 pending"),
    ("pods that do not wait", "- assert: [{waiting: {}}]", "all 3 pods pending", "0 pending, 3 placed"),
    (
        "pods that wait for another reason",
        "- cordon: '*'\n- scale: {target: deployment/web, replicas: 4}\n"
        "- assert: [{waiting: {atLeast: 1, reason: Insufficient cpu}}]",
        "at least 1 pod pending because of 'Insufficient cpu'",
        "0 pending because of 'Insufficient cpu', 1 for other reasons, 3 placed",
    ),
    (
        "pods on one side",
        "- drain: label:pool=blue\n- assert: [{spread: {maxSkew: 2}}]",
        "a skew of at most 2 over topology.kubernetes.io/zone",
        "a skew of 3: a: 0, b: 3",
    ),
    ("pods elsewhere", "- assert: [{onNodes: {nodes: n1}}]", "all 3 pods on n1", "1 there, 2 elsewhere, 0 pending"),
    ("evictions", "- drain: n1\n- assert: [{evictions: {atMost: 0}}]", "at most 0 evictions", "1 eviction"),
    (
        "a longer waiting time",
        f"- create: [{POD % '9'}]\n- wait: 10m\n- assert: [{{waitingTime: {{atMost: 9m}}}}]",
        "a longest waiting time of at most 9 min",
        "10 min of 4 pods",
    ),
    (
        "a percentile of waiting times",
        f"- create: [{POD % '9'}]\n- wait: 10m\n- assert: [{{waitingTime: {{atMost: 1s, percentile: 76}}}}]",
        "a waiting time at percentile 76 of at most 1 s",
        "10 min of 4 pods",
    ),
    (
        "too much of a resource",
        "- assert: [{utilisation: {atMost: 0.2, nodes: n1}}]",
        "at most 20 % of cpu requested on n1",
        "25 %",
    ),
    ("the number of nodes", "- assert: [{nodes: {nodes: 'x*', count: 1}}]", "1 node", "0 nodes"),
    (
        "pods that are not there",
        "- assert: [{placed: {pods: deployment/db}}]",
        "a pod or workload (pods: ",
        "pod 'deployment/db'",
    ),
]


@pytest.mark.parametrize(("steps", "wanted", "got"), [pytest.param(*case[1:], id=case[0]) for case in FALSE])
def test_a_failed_assertion_reports_expected_and_actual_values(
    steps: str, wanted: str, got: str, tmp_path: Path
) -> None:
    result = run(tmp_path, steps, files=FILES)
    assert result.steps[-1].outcome is Outcome.FAILED
    (failed,) = result.steps[-1].failed
    assert failed.result.wanted.startswith(wanted)
    assert failed.result.got == got


@pytest.mark.parametrize(
    ("check", "want"),
    [
        pytest.param("placed: {pods: deployment/wep}", "try 'deployment/default/web'", id="a workload"),
        pytest.param("placed: {pods: 'label:app=wep'}", "try 'label:app=web'", id="the value of a label"),
        pytest.param("evictions: {pods: 'label:ap', atMost: 0}", "try 'label:app'", id="the key of a label"),
        pytest.param("onNodes: {pods: deployment/web, nodes: 'label:pol=blue'}", "try 'label:pool=blue'", id="nodes"),
        pytest.param("spread: {over: topology.kubernetes.io/rak}", "try topology.kubernetes.io/rack", id="domains"),
        pytest.param("utilisation: {resource: cpuu, atLeast: 0.1}", "try cpu", id="a resource"),
        pytest.param("placed: {pods: 'x*'}", None, id="a pattern"),
    ],
)
def test_a_check_with_a_misspelt_name_suggests_the_likely_spelling(
    check: str, want: str | None, tmp_path: Path
) -> None:
    (failed,) = run(tmp_path, f"- assert: [{{{check}}}]", files=FILES).steps[-1].failed
    assert list(failed.result.details) == ([want] if want else [])


BROKEN = [
    (
        "an object that exists is created",
        "- create: [web.yaml]",
        "Deployment default/web already exists; try apply instead of create",
    ),
    (
        "a target that is not there",
        "- scale: {target: deployment/wep, replicas: 1}",
        "target: expected an existing Deployment, got 'deployment/wep'; try 'deployment/default/web'",
    ),
    (
        "a kind that is misspelt",
        "- delete: [deploymnt/web]",
        "target: expected kind/name or kind/namespace/name, as kubectl names objects, got 'deploymnt/web'; try 'deployment/web'",
    ),
    (
        "a Node is scaled",
        "- scale: {target: node/n1, replicas: 1}",
        "scale node/n1: expected a Deployment, ReplicaSet, ReplicationController or StatefulSet, got a Node",
    ),
    (
        "a zone that is not there",
        "- fail: {zone: c}",
        "zone: expected a value of the nodes' label topology.kubernetes.io/zone: a, b, got 'c'",
    ),
    (
        "a budget that never allows a drain",
        "- apply: [budget.yaml]\n- drain: n1\n  timeout: 1m",
        "n1 was not drained within 1m: default/web-",
    ),
    (
        "a condition that never becomes true",
        "- when: [{placed: {count: 4}}]\n  timeout: 5m",
        "its checks did not become true within 5m",
    ),
    (
        "a time that has passed",
        "- wait: 10m\n- at: 5m\n  cordon: n1",
        "the step should begin at 5m, but the previous step ended at 10 min",
    ),
    (
        "a JSON patch that does not fit",
        "- patch: {target: node/n1, type: json, patch: [{op: remove, path: /spec/nothing}]}",
        "patch of node/n1: ",
    ),
    (
        "a list as a merge patch",
        "- patch: {target: node/n1, patch: []}",
        "patch: expected an object, got a list; try type: json",
    ),
    (
        "a cluster that never settles",
        "- create: [cron.yaml]\n- wait: settled\n  timeout: 2h",
        "the cluster did not become idle within 2h",
    ),
    (
        "an object that is refused",
        f"- create: [{POD % '1'}]\n".replace("{containers", "{priorityClassName: none, containers"),
        "Pod default/p is refused: ",
    ),
]
CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {bayplan.io/run-time: 1m}}
        spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""


@pytest.mark.parametrize(("steps", "problem"), [pytest.param(*case[1:], id=case[0]) for case in BROKEN])
def test_an_impossible_step_ends_the_scenario(steps: str, problem: str, tmp_path: Path) -> None:
    result = run(tmp_path, f"{steps}\n- assert: [{{nodes: {{count: 3}}}}]", files={"budget": BUDGET, "cron": CRON})
    *_, broken, last = result.steps
    assert broken.outcome is Outcome.BROKEN
    assert broken.problem.startswith(problem)
    assert last.outcome is Outcome.NOT_RUN
    assert not result.passed


def test_a_failed_assertion_does_not_end_the_scenario(tmp_path: Path) -> None:
    result = run(tmp_path, "- assert: [{nodes: {count: 9}}, {nodes: {count: 8}}]\n- assert: [{nodes: {count: 3}}]")
    assert [step.outcome for step in result.steps] == [Outcome.FAILED, Outcome.PASSED]
    assert len(result.steps[0].failed) == 2


def test_the_waiting_time_counts_all_pods_that_had_the_same_name(tmp_path: Path) -> None:
    steps = (
        f"- create: [{POD % '5'}]\n- wait: 10m\n- delete: [pod/p]\n- create: [{POD % '1'}]\n"
        "- assert: [{placed: {pods: p}}, {waitingTime: {pods: p, atMost: 9m}}, {waitingTime: {atMost: 10m}}]"
    )
    (failed,) = run(tmp_path, steps).steps[-1].failed
    assert failed.result.got == "10 min of 2 pods"


def test_a_pending_pod_that_would_fit_now_is_explained(tmp_path: Path) -> None:
    steps = (
        "- delete: ['node/n*']\n- create: [%s]\n- wait: 10m\n- create: [nodes.yaml]\n- assert: [{placed: {pods: p}}]"
        % (POD % "3.5")
    )
    (failed,) = run(tmp_path, steps).steps[-1].failed
    assert [each.reason for each in failed.explained] == [
        "default/p is pending: it would fit on n1 now, and waits for its next attempt"
    ]


@pytest.mark.parametrize("action", ["create", "apply"])
def test_generated_names_of_all_steps_and_files_differ(action: str, tmp_path: Path) -> None:
    pod = "apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: {containers: [{name: c, image: i}]}"
    files = {"pod": "\n".join(pod.split(", ", 3))}
    steps = f"- {action}: [pod.yaml, {{{pod}}}]\n- {action}: [{{{pod}}}]\n- wait: settled\n"
    steps += "- assert: [{placed: {pods: 'p-*', count: 3}}]"
    result = run(tmp_path, steps, files=files)
    assert [step.outcome for step in result.steps] == [Outcome.PASSED] * 4


@pytest.mark.parametrize(
    "earlier",
    [
        pytest.param("cluster: [nodes.yaml, pod.yaml, {given}]\nsteps:\n", id="a file, and an object of the cluster"),
        pytest.param("cluster: [nodes.yaml, pod.yaml]\nsteps:\n- create: [{given}]\n", id="the cluster, and a step"),
        pytest.param("cluster: [nodes.yaml]\nsteps:\n- create: [pod.yaml]\n- create: [{given}]\n", id="two steps"),
        pytest.param("cluster: [nodes.yaml, trace.csv, pod.yaml]\nsteps:\n", id="a trace, and a file"),
        pytest.param("cluster: [nodes.yaml, trace.csv]\nsteps:\n- create: [pod.yaml]\n", id="a trace, and a step"),
    ],
)
def test_generated_names_differ_from_names_of_later_parts_and_of_traces(earlier: str, tmp_path: Path) -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {%s}, spec: {containers: [{name: c, image: i}]}}"
    head = "apiVersion: bayplan.io/v1alpha1\nkind: Scenario\nname: test\n"
    head += earlier.replace("{given}", pod % "name: p-00001")
    (tmp_path / "trace.csv").write_text(TRACE, encoding="utf-8")
    checks = "- wait: settled\n- assert: [{placed: {pods: 'p-*', count: 2}}]"
    path = write(tmp_path, checks, head=head, files={"pod": pod % "generateName: p-"})
    (result,) = run_scenarios(ScenarioOptions(paths=[str(path)], check=True))
    assert {step.outcome for step in result.steps} == {Outcome.PASSED}


def test_pending_pods_are_explained_once_per_workload(tmp_path: Path) -> None:
    result = run(tmp_path, "- scale: {target: deployment/web, replicas: 15}\n- assert: [{placed: {}}]")
    (explained,) = result.steps[-1].failed[0].explained
    assert explained.others == 2
    assert "lacks 1 cpu" in explained.reason


def test_the_same_seed_gives_the_same_decisions(tmp_path: Path) -> None:
    steps = "- scale: {target: deployment/web, replicas: 9}\n- drain: n1\n- wait: settled"
    first, again, other = (run(tmp_path, steps, seed=seed).digest for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_scenario_without_steps_has_the_digest_of_simulate(tmp_path: Path) -> None:
    result = run(tmp_path, "- after: 0s")
    files = [str(tmp_path / "nodes.yaml"), str(tmp_path / "web.yaml")]
    assert result.digest == simulate(SimulationOptions(paths=files)).digest
