"""Random small clusters and pods for differential tests; the same seed gives the same ones."""

from __future__ import annotations

from random import Random

from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

ZONES = ("z1", "z2", "z3")


def random_node(random: Random, name: str) -> Node:
    """Return a node with random labels and, with some probability each, taints, images and an extended resource."""
    labels = {"kubernetes.io/hostname": name}
    if random.random() < 0.8:
        labels["topology.kubernetes.io/zone"] = random.choice(ZONES)
    if random.random() < 0.3:
        labels["disk"] = random.choice(("ssd", "hdd"))
    taints = []
    if random.random() < 0.2:
        taints.append({"key": "dedicated", "value": "gpu", "effect": random.choice(("NoSchedule", "PreferNoSchedule"))})
    allocatable = {"cpu": random.choice(("1", "2", "3500m", "8")), "memory": random.choice(("2Gi", "4Gi", "16Gi"))}
    allocatable["pods"] = str(random.choice((2, 4, 110)))
    if random.random() < 0.3:
        allocatable["example.com/gpu"] = str(random.choice((1, 4)))
    images = [{"names": ["registry.example/app:v1"], "sizeBytes": random.choice((50, 300, 900)) << 20}]
    node = decode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": random.random() < 0.05},
            "status": {
                "capacity": allocatable,
                "allocatable": allocatable,
                "images": images if random.random() < 0.3 else [],
            },
        }
    )
    assert isinstance(node, Node)
    return node


def random_pod(random: Random, name: str, templates: int = 12) -> Pod:
    """Return a pod of one of `templates` random shapes, so that plans of earlier pods are used again."""
    shape = Random(random.randrange(templates))
    requests = {}
    if shape.random() < 0.9:
        requests["cpu"] = shape.choice(("100m", "250m", "1"))
    if shape.random() < 0.8:
        requests["memory"] = shape.choice(("64Mi", "500Mi", "1Gi"))
    if shape.random() < 0.2:
        requests["example.com/gpu"] = "1"
    container: dict[str, object] = {
        "name": "c",
        "image": "registry.example/app:v1",
        "resources": {"requests": requests},
    }
    if shape.random() < 0.3:
        container["ports"] = [{"containerPort": 80, "hostPort": shape.choice((8080, 9090)), "protocol": "TCP"}]
    spec: dict[str, object] = {"containers": [container], "schedulerName": "default-scheduler"}
    if shape.random() < 0.3:
        spec["nodeSelector"] = {"disk": "ssd"}
    if shape.random() < 0.4:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if shape.random() < 0.4:
        term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1", "z2"]}]}
        preferred = [{"weight": 10, "preference": term}]
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    labels = {"app": str(shape.randrange(3))}
    key = shape.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
    if shape.random() < 0.4:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": shape.choice((1, 3)),
                "topologyKey": key,
                "whenUnsatisfiable": shape.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": {"matchLabels": labels},
            }
        ]
    if shape.random() < 0.4:
        other = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": str(shape.randrange(3))}}}
        kind = shape.choice(("podAffinity", "podAntiAffinity"))
        rule: dict[str, object] = {"requiredDuringSchedulingIgnoredDuringExecution": [other]}
        if shape.random() < 0.5:
            rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": other}]}
        affinity = spec.setdefault("affinity", {})
        assert isinstance(affinity, dict)
        affinity[kind] = rule
    pod = decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": labels, "uid": f"uid-{name}"},
            "spec": spec,
        }
    )
    assert isinstance(pod, Pod)
    return pod
