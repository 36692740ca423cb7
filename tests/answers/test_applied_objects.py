"""What-if questions that apply objects: pods are admitted, created or replaced, and nodes keep only pods that tolerate them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bayplan.answers.applied_objects import LAST_APPLIED, apply_to
from bayplan.answers.changes import Change, parse_change
from bayplan.answers.copies import admission_of
from bayplan.answers.what_if import Answer, Reschedule, what_if
from bayplan.app.question_clusters import read_change
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, encode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import ResourceQuota
from bayplan.objects.storage import PersistentVolume
from bayplan.objects.volumes import Volume
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.object_builders import make_object
from tests.answers.clusters import cluster_of, node, running, waiting

HIGH = make_object(
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
)
QUOTA = make_object(
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
)
LIMITS = make_object(
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
    }
)
WEB = running("web-1", "n1", cpu="4")
TAINTED = make_node("n1").capacity(cpu="4", memory="8Gi", pods="20").zone("a").taint("x", "y", "NoExecute").obj()
NODES = (node("n1"), node("n2", cpu="1"))


def applied(*items: KubernetesObject, cluster: tuple[KubernetesObject, ...]) -> Answer:
    return what_if(cluster_of(*cluster), [Change("apply", "new.yaml", objects=items)])


def important() -> KubernetesObject:
    pod = {"priorityClassName": "high", "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    return make_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "top"}, "spec": pod})


def admitted(pod: Pod) -> Pod:
    token = Volume(name="kube-api-access-x7x2p")
    spec = replace(admission_of(cluster_of()).admit(pod), volumes=(token,), service_account_name="default")
    return replace(pod, spec=spec)


@pytest.mark.parametrize(
    ("cluster", "items", "want"),
    [
        pytest.param((*NODES, WEB.obj(), HIGH), [important()], {"web-1": "", "top": "n1"}, id="a new pod preempts"),
        pytest.param((*NODES, WEB.obj()), [important(), HIGH], {"web-1": "", "top": "n1"}, id="by an applied class"),
        pytest.param(
            (*NODES, WEB.obj()), [running("web-1", "n1", cpu="9").obj()], {"web-1": "n1"}, id="the node is given"
        ),
        pytest.param(
            (*NODES, running("web-1", "n1").obj()),
            [waiting("web-1", cpu="9", owner="web")],
            {"web-1": ""},
            id="a larger version fits nowhere",
        ),
        pytest.param(
            (*NODES, running("web-1", "n2").obj()),
            [waiting("web-1", cpu="3", owner="web")],
            {"web-1": "n1"},
            id="a larger version fits elsewhere",
        ),
        pytest.param(
            (*NODES, admitted(running("web-1", "n2").obj())),
            [waiting("web-1", owner="web")],
            {"web-1": "n2"},
            id="an equal version",
        ),
        pytest.param(
            (*NODES, waiting("web-1", cpu="9", owner="web")),
            [waiting("web-1", cpu="3", owner="web")],
            {"web-1": "n1"},
            id="a smaller version of a pending pod",
        ),
        pytest.param((node("n1"), node("n2"), WEB.obj()), [TAINTED], {"web-1": "n2"}, id="a new taint evicts"),
        pytest.param((TAINTED, node("n2"), WEB.obj()), [TAINTED], {"web-1": "n1"}, id="an old taint does not"),
    ],
)
def test_applied_objects_have_the_effect_of_a_creation_or_replacement(
    cluster: tuple[KubernetesObject, ...], items: list[KubernetesObject], want: dict[str, str]
) -> None:
    found: dict[str, str] = {}
    what_if(
        cluster_of(*cluster),
        [Change("apply", "new.yaml", objects=tuple(items))],
        after=lambda trial: found.update({key[8:]: trial.node_of(key) for key in trial.scheduler.pods}),
    )
    assert found == want


@pytest.mark.parametrize(
    ("rule", "pod", "want"),
    [
        pytest.param(
            QUOTA,
            waiting("web-2"),
            "default/web-2 is never created: forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1",
            id="a quota",
        ),
        pytest.param(QUOTA, waiting("web-1", cpu="2", owner="web"), None, id="a replaced pod leaves its quota"),
        pytest.param(
            LIMITS,
            waiting("web-1", cpu="3", owner="web"),
            "default/web-1 is never replaced: forbidden: maximum cpu usage per Container is 2",
            id="a limit",
        ),
    ],
)
def test_applied_pods_are_admitted(rule: KubernetesObject, pod: KubernetesObject, want: str | None) -> None:
    answer = applied(pod, cluster=(*NODES, running("web-1", "n1").obj(), rule))
    refused = [each for each in answer.warnings if "is never" in each]
    assert (len(refused), refused[:1] == [] or refused[0].startswith(want or "-")) == (int(want is not None), True)


def test_an_applied_pod_with_an_unknown_priority_class_is_refused() -> None:
    with pytest.raises(InputError, match=r"priorityClassName.*got 'high'"):
        applied(important(), cluster=(*NODES,))


def test_the_priority_of_pods_that_are_scheduled_again_changes_where_they_are() -> None:
    cluster = cluster_of(node("n1"), node("n2", cpu="64", memory="64Gi"), running("b-1", "n1", owner="b").obj())
    answer = what_if(cluster, [parse_change("priority=b:5")], reschedule=Reschedule.ALL)
    assert not answer.differences


def test_fewer_replicas_than_an_earlier_change_has_created_remain() -> None:
    cluster = cluster_of(node("n1"), running("web-1", "n1").obj(), make_pod("one").req(cpu="0").node("n1").obj())
    for workload in ("web", "pod/one"):
        changes = [f"scale={workload}:4", f"scale={workload}:2", f"scale={workload}:3"]
        answer = what_if(cluster, [parse_change(change) for change in changes])
        assert answer.counts["new"] == 2
        answer = what_if(cluster, [parse_change(f"scale={workload}:4"), parse_change(f"delete={workload}")])
        assert answer.counts == {"moved": 0, "waits": 0, "placed": 0, "gone": 1, "new": 0}


def test_scaling_two_workloads_with_the_same_name_creates_copies_of_both() -> None:
    cluster = cluster_of(
        node("n1"), running("web-1", "n1", cpu="0").obj(), running("job-1", "n1", cpu="0", kind="Job").obj()
    )
    answer = what_if(cluster, [parse_change("scale=replicaset/web:3"), parse_change("scale=job/web:3")])
    assert answer.counts["new"] == 4


def test_an_evicted_pod_of_a_deleted_workload_is_not_created_again() -> None:
    # The restarted pod fits only if it evicts the other one, because the cordon has closed its own node.
    top = running("top-1", "n2", cpu="4", owner="top", priority=9).obj()
    cluster = cluster_of(node("n1"), node("n2"), WEB.obj(), top)
    answer = what_if(cluster, [parse_change(text) for text in ("cordon=n2", "restart=top", "delete=web")])
    assert {row.pod: row.kind for row in answer.differences} == {"default/top-1": "moved", "default/web-1": "gone"}


def test_an_applied_pod_keeps_its_owner_and_the_labels_that_its_manifest_lacks() -> None:
    pod = admitted(running("web-1", "n1", owner="web").label(tier="front").obj())
    metadata = replace(pod.metadata, uid="", owner_references=(), labels={"extra": "yes"})
    manifest = replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""))
    labels: dict[str, str] = {}
    apply = Change("apply", "new.yaml", objects=(manifest,))
    cluster = cluster_of(node("n1"), pod)
    what_if(cluster, [apply], after=lambda trial: labels.update(trial.scheduler.pods[pod.key].metadata.labels))
    assert labels == {"app": "web", "tier": "front", "extra": "yes"}
    answer = what_if(cluster, [apply, parse_change("scale=web:0")])
    assert [(row.pod, row.kind) for row in answer.differences] == [("default/web-1", "gone")]


@pytest.mark.parametrize(
    ("last", "want"),
    [
        pytest.param(
            '{"metadata": {"labels": {"tier": "", "extra": ""}}}', {"app": "web", "extra": "yes"}, id="lists it"
        ),
        pytest.param('{"metadata": {"labels": null}}', {"app": "web", "tier": "front", "extra": "yes"}, id="has none"),
        pytest.param("{", {"app": "web", "tier": "front", "extra": "yes"}, id="is not JSON"),
    ],
)
def test_a_label_that_the_manifest_lacks_is_removed_if_the_last_applied_manifest(
    last: str, want: dict[str, str]
) -> None:
    builder = running("web-1", "n1", owner="web").label(tier="front").annotation({LAST_APPLIED: last})
    pod = admitted(builder.obj())
    manifest = replace(pod, metadata=replace(pod.metadata, labels={"extra": "yes"}, annotations={}))
    labels: dict[str, str] = {}
    what_if(
        cluster_of(node("n1"), pod),
        [Change("apply", "new.yaml", objects=(manifest,))],
        after=lambda trial: labels.update(trial.scheduler.pods[pod.key].metadata.labels),
    )
    assert labels == want


@pytest.mark.parametrize("version", ["", "7"])
def test_applied_objects_keep_the_labels_taints_and_status_that_their_manifest_lacks(version: str) -> None:
    existing = replace(TAINTED, metadata=replace(TAINTED.metadata, resource_version=version))
    manifest = {"kind": "Node", "metadata": {"name": "n1"}, "spec": {"unschedulable": True}}
    found: list[Node | None] = []
    what_if(
        cluster_of(existing),
        [Change("apply", "new.yaml", objects=(make_object({"apiVersion": "v1", **manifest}),))],
        after=lambda trial: found.append(trial.node("n1")),
    )
    metadata = replace(existing.metadata, resource_version="")
    assert found == [replace(existing, metadata=metadata, spec=replace(existing.spec, unschedulable=True))]


TAINTS = [{"key": "x", "value": "y", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("spec", "last", "want"),
    [
        pytest.param({}, {}, (True, 1), id="a field that the manifest lacks is kept"),
        pytest.param({}, {"taints": TAINTS}, (True, 0), id="a field of the last manifest is removed"),
        pytest.param({"unschedulable": False}, {}, (False, 1), id="a default that is written"),
        pytest.param({"taints": []}, {}, (True, 0), id="an empty list"),
        pytest.param({"taints": None}, {}, (True, 0), id="null removes a field"),
        pytest.param({"taints": [*TAINTS, {"key": "z", "effect": "NoSchedule"}]}, {}, (True, 2), id="a longer list"),
    ],
)
def test_specs_are_merged_as_kubectl_apply_does(
    spec: dict[str, object], last: dict[str, object], want: tuple[bool, int], tmp_path: Path
) -> None:
    annotations = {LAST_APPLIED: json.dumps({"spec": last})}
    spec_before = replace(TAINTED.spec, unschedulable=True)
    existing = replace(TAINTED, metadata=replace(TAINTED.metadata, annotations=annotations), spec=spec_before)
    file = tmp_path / "node.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": spec}))
    found: list[Node | None] = []
    what_if(cluster_of(existing), [read_change(f"apply={file}")], after=lambda trial: found.append(trial.node("n1")))
    assert [(node.spec.unschedulable, len(node.spec.taints)) for node in found if node is not None] == [want]


def test_an_applied_quota_keeps_the_limits_that_its_manifest_lacks() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    old, new = (make_object({**quota, "spec": {"hard": hard}}) for hard in ({"pods": "1", "cpu": "4"}, {"pods": "2"}))
    found: list[ResourceQuota | None] = []
    what_if(
        cluster_of(node("n1"), old),
        [Change("apply", "new.yaml", objects=(new,))],
        after=lambda trial: found.append(trial.catalog.get(ResourceQuota, "default/q")),
    )
    assert [each and each.spec.hard for each in found] == [{"pods": "2", "cpu": "4"}]


def test_an_applied_volume_stays_bound() -> None:
    document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}
    found: list[PersistentVolume | None] = []
    what_if(
        cluster_of(node("n1"), make_object({**document, "status": {"phase": "Bound"}})),
        [Change("apply", "new.yaml", objects=(make_object(document),))],
        after=lambda trial: found.append(trial.catalog.get(PersistentVolume, "v")),
    )
    assert [each and each.status.phase for each in found] == ["Bound"]


def deployment(containers: list[dict[str, object]], **fields: object) -> Document:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": containers, **POD_FIELDS}}
    spec = {"selector": {"matchLabels": {"app": "w"}}, "template": template, **fields}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": spec,
    }


POD_FIELDS = {"volumes": [{"name": "v", "emptyDir": {}}]}
SIDECAR: Document = {"name": "sidecar", "image": "s"}
DNS = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
LIVE: Document = {"name": "c", "image": "i1", "resources": {"requests": {"cpu": "2"}}}


@pytest.mark.parametrize(
    ("last", "live", "new", "want"),
    [
        pytest.param(
            [], [LIVE], [{"name": "c", "image": "i2"}], [{**LIVE, "image": "i2"}], id="keeps the other fields"
        ),
        pytest.param([], [LIVE], [SIDECAR], [SIDECAR, LIVE], id="keeps an item that no manifest had"),
        pytest.param([LIVE], [LIVE], [SIDECAR], [SIDECAR], id="loses an item of the last manifest"),
        pytest.param(
            [LIVE], [LIVE], [{"name": "c", "image": "i1"}], [{"name": "c", "image": "i1"}], id="loses its fields"
        ),
        pytest.param(
            [], [{**LIVE, "ports": DNS}], [{"name": "c", "ports": DNS}], [{**LIVE, "ports": DNS}], id="equal keys"
        ),
    ],
)
def test_an_applied_list_with_a_merge_key(
    last: list[dict[str, object]], live: list[dict[str, object]], new: list[dict[str, object]], want: object
) -> None:
    containers = part(after_apply(deployment(last), deployment(live), deployment(new)), "template", "spec")[
        "containers"
    ]
    assert containers == want


@pytest.mark.parametrize(
    ("live", "new", "want"),
    [
        pytest.param(
            {"maxSurge": 5}, {"type": "Recreate"}, {"type": "Recreate"}, id="removes fields that are not allowed"
        ),
        pytest.param(
            {"maxSurge": 5, "maxUnavailable": 1},
            {"type": "RollingUpdate"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 5, "maxUnavailable": 1}},
            id="keeps them if nothing changes",
        ),
    ],
)
def test_an_applied_strategy(live: object, new: object, want: object) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": live}
    spec = after_apply({}, deployment([LIVE], strategy=strategy), deployment([LIVE], strategy=new))
    assert spec["strategy"] == want


def test_an_applied_volume_of_a_template_replaces_its_source() -> None:
    new = deployment([LIVE])
    part(new, "spec", "template", "spec")["volumes"] = [{"name": "v", "hostPath": {"path": "/x"}}]
    (volume,) = parts(part(after_apply({}, deployment([LIVE]), new), "template", "spec"), "volumes")
    assert "emptyDir" not in volume


def test_a_list_item_without_its_merge_key_is_an_error() -> None:
    with pytest.raises(InputError, match=r"apply Deployment default/w: .* does not contain declared merge key: name"):
        after_apply({}, deployment([LIVE]), deployment([{"image": "i2"}]))


def after_apply(last: Document, live: Document, new: Document) -> Document:
    """Return the spec of an existing object after a manifest is applied; `last`: the manifest that was applied before."""
    old = default_object(decode(live))
    old = replace(old, metadata=replace(old.metadata, annotations={LAST_APPLIED: json.dumps(last)}))
    return part(encode(apply_to(old, default_object(decode(new)), part(new, "spec"))), "spec")


def test_a_selector_that_is_replaced_as_a_whole_loses_its_removed_labels() -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
    live = {"spec": {"selector": {"matchLabels": {"app": "web", "tier": "x"}}}}
    old = make_object({**budget, "metadata": {"name": "web", "annotations": {LAST_APPLIED: json.dumps(live)}}, **live})
    spec: Document = {"selector": {"matchLabels": {"app": "web"}}}
    new = apply_to(old, make_object({**budget, "spec": spec}), spec)
    assert part(encode(new), "spec")["selector"] == spec["selector"]
