"""Reading any file as a manifest or a trace succeeds or raises InputError, never another exception."""

import gzip
import json
from contextlib import suppress
from pathlib import Path

import msgspec
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.formats.inputs import load_inputs
from bayplan.formats.schema import unknown_fields

FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

POD: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "r"}]},
    "spec": {
        "nodeName": "n",
        "containers": [
            {
                "name": "c",
                "image": "x",
                "ports": [{"hostPort": 80, "containerPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": 1, "memory": 1.5}},
            }
        ],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
        "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}],
        "overhead": {"cpu": "1"},
    },
}
NODE: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-31T12:00:00Z"}]},
    "status": {"capacity": {"cpu": "4", "pods": 110}, "images": [{"names": ["x"], "sizeBytes": 5}]},
}
JOB: dict[str, object] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"generateName": "j-"},
    "spec": {"parallelism": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
}
LIST: dict[str, object] = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}, "spec": {}}]}

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["1e400", "1e99999999", "-1", "2 cores", "9" * 40, "0.1m", "Ki", "\x00", "Pod", "v1", "List"]),
    st.builds(list),
    st.builds(dict),
    st.builds(lambda: [None]),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)


def _load(data: bytes, folder: Path, name: str, strict: bool = False) -> None:
    path = folder / name
    path.write_bytes(data)
    with suppress(InputError):
        manifest = load_inputs([str(path)], strict=strict).manifest
        for each in manifest.loaded:
            assert each.document is not each.document
            assert isinstance(unknown_fields(each.document), list)


@st.composite
def _mutated(draw: st.DrawFn) -> dict[str, object]:
    """Draw an object with a few of its parts replaced, dropped or renamed."""
    document: dict[str, object] = json.loads(json.dumps(draw(st.sampled_from([POD, NODE, JOB, LIST]))))
    for _ in range(draw(st.integers(0, 3))):
        place: dict[str, object] | list[object] = document
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = place[key]  # type: ignore[call-overload, index]
            if isinstance(inner, dict | list) and inner and draw(st.integers(0, 9)) < 8:
                place = inner
                continue
            if isinstance(place, dict) and draw(st.booleans()):
                place[draw(st.sampled_from([str(key), "kind", "nam", "", "spec", "é"]))] = place.pop(str(key))
            else:
                place[key] = draw(JUNK)  # type: ignore[call-overload, index]
            break
    return document


@FUZZ
@given(st.lists(_mutated(), min_size=1, max_size=3), st.sampled_from(["json", "yaml", "jsonl"]), st.booleans())
def test_mutated_objects_load_or_raise_input_error(
    tmp_path: Path, documents: list[dict[str, object]], form: str, strict: bool
) -> None:
    if form == "yaml":
        data = yaml.safe_dump_all(documents).encode()
    elif form == "jsonl":
        data = b"\n".join(json.dumps(document).encode() for document in documents)
    else:
        data = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}).encode()
    _load(data, tmp_path, f"f.{form}", strict)


VALID = b"".join(b"---\n" + yaml.safe_dump(document).encode() for document in (POD, NODE, JOB, LIST))


@FUZZ
@given(
    st.sampled_from([VALID, json.dumps(POD, indent=1).encode(), msgspec.json.encode([POD]), gzip.compress(VALID)]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.binary(max_size=4)), max_size=4),
    st.sampled_from(["f.yaml", "f.json"]),
)
def test_mutated_bytes_load_or_raise_input_error(
    tmp_path: Path, data: bytes, edits: list[tuple[float, int, bytes]], name: str
) -> None:
    for where, length, new in edits:
        position = int(where * len(data))
        data = data[:position] + new + data[position + length :]
    _load(data, tmp_path, name)


@FUZZ
@given(st.binary(max_size=200), st.sampled_from(["f.yaml", "f.json", "f.gz", "-"]))
@example(b"{" * 5000, "f.yaml")
@example(b"[" * 5000, "f.json")
@example(b"%YAML 9.9\n---\n", "f.yaml")
@example(b"\xff\xfe\x00", "f.yaml")
def test_arbitrary_bytes_load_or_raise_input_error(tmp_path: Path, data: bytes, name: str) -> None:
    _load(data, tmp_path, name)


CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "1000", "-1", "1.5", "1e9", "nan", "G2|T4", "|", "a", '"', "\x00", "9" * 30, "é"]),
    st.text(max_size=4),
)


@FUZZ
@given(
    st.sampled_from(
        [
            "sn,cpu_milli,memory_mib,gpu,model",
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli",
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        ]
    ),
    st.lists(st.lists(CELLS, max_size=11), max_size=4),
    st.binary(max_size=3),
)
def test_mutated_tables_load_or_raise_input_error(
    tmp_path: Path, header: str, rows: list[list[str]], tail: bytes
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join([header, *(",".join(row) for row in rows)]).encode("utf-8", "replace") + tail)
    with suppress(InputError):
        load_inputs([str(path)])
