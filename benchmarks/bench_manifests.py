"""The time to load a large manifest, from the file to typed objects with all checks. The files are generated."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from bayplan.formats.inputs import load_inputs
from benchmarks import Figure


def pod_document(number: int) -> dict[str, object]:
    """Return a pod as clusters print them: metadata, two containers, volumes, tolerations, status."""
    name = f"pod-{number:06}"
    containers = [
        {
            "name": container,
            "image": f"registry.example/{container}:v{number % 40}",
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "resources": {
                "requests": {"cpu": f"{100 + number % 900}m", "memory": "256Mi"},
                "limits": {"memory": "512Mi"},
            },
            "env": [{"name": f"SETTING_{index}", "value": f"value-{number}-{index}"} for index in range(12)],
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/app"},
                {"name": "data", "mountPath": "/var/lib/app"},
            ],
        }
        for container in ("app", "sidecar")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{number % 50}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "labels": {"app": f"app-{number % 500}", "tier": "backend"},
            "annotations": {"example.com/checksum": f"sum-{number:060}"},
        },
        "spec": {
            "containers": containers,
            "volumes": [{"name": "config", "configMap": {"name": "app"}}, {"name": "data", "emptyDir": {}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def write_json(path: Path, target_bytes: int) -> int:
    """Write a List of pods of about this size; return the number of pods."""
    items: list[str] = []
    size = 0
    while size < target_bytes:
        items.append(json.dumps(pod_document(len(items))))
        size += len(items[-1])
    path.write_text('{"apiVersion": "v1", "kind": "List", "items": [' + ",\n".join(items) + "]}")
    return len(items)


def write_yaml(path: Path, target_bytes: int) -> int:
    """Write YAML documents of about this size; return their number. Each is one template with its number inserted."""
    template = yaml.safe_dump(pod_document(123456), sort_keys=False)
    documents: list[str] = []
    size = 0
    while size < target_bytes:
        text = template.replace("123456", f"{len(documents):06}")
        documents.append(text)
        size += len(text)
    path.write_text("---\n".join(documents))
    return len(documents)


def figures(size: str) -> Iterator[Figure]:
    """Yield the seconds for a JSON list and for YAML documents, 50 MB each."""
    target = 200_000 if size == "small" else 50_000_000
    with TemporaryDirectory() as folder:
        for name, write in (("pods.json", write_json), ("pods.yaml", write_yaml)):
            path = Path(folder) / name
            count = write(path, target)
            start = time.perf_counter()
            loaded = load_inputs([str(path)]).manifest
            seconds = time.perf_counter() - start
            assert len(loaded.pods) == count
            yield Figure(
                name=f"load {path.stat().st_size / 1e6:,.1f} MB of {path.suffix[1:].upper()}",
                value=seconds,
                unit="s",
                note=f"{count:,} pods",
            )
