"""Manifests to typed objects: errors, warnings, and preserved fields."""

import gc
import gzip
import io
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.inputs import load_inputs
from bayplan.formats.manifest import Manifest, WarningKind
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume, StorageClass
from bayplan.objects.workloads import Deployment
from tests.shared import shared_path

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: x}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 4, pods: 10}}\n"


def load_text(*texts: str, strict: bool = False, folder: Path) -> Manifest:
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.yaml"
        path.write_text(text)
        paths.append(str(path))
    return load_inputs(paths, strict=strict).manifest


def warnings_of(manifest: Manifest, folder: Path) -> list[str]:
    return [f"{each.kind}: {each}".replace(f"{folder}/", "") for each in manifest.warnings]


def test_manifests_load_in_order_with_defaults_sources_and_documents(tmp_path: Path) -> None:
    manifest = load_text(f"{POD}---\n{NODE}", POD.replace("web", "db"), folder=tmp_path)
    assert [pod.key for pod in manifest.pods] == ["default/web", "default/db"]
    assert manifest.pods[0].spec.scheduler_name == "default-scheduler"
    assert manifest.nodes[0].status.allocatable == {"cpu": 4, "pods": 10}
    assert [str(each.source).replace(f"{tmp_path}/", "") for each in manifest.loaded] == [
        "0.yaml:1",
        "0.yaml:8",
        "1.yaml:1",
    ]
    assert manifest.loaded[0].document == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    assert manifest.counts() == {"Pod": 2, "Node": 1}
    assert manifest.warnings == []
    assert list(manifest.objects()) == [manifest.pods[0], manifest.nodes[0], manifest.pods[1]]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            POD.replace("image: x", "image: x, resources: {requests: {cpu: 2 cores}}"),
            "0.yaml:6 Pod web $.spec.containers[0].resources.requests.cpu: expected a quantity, got '2 cores'; try '2'",
            id="a bad quantity",
        ),
        pytest.param(
            POD.replace("image: x", "image: 1.10"),
            "0.yaml:6 Pod web $.spec.containers[0].image: expected a string, got 1.1 (written 1.10); try '1.10'",
            id="a number for a string",
        ),
        pytest.param(
            POD.replace("image: x", "image: y"),
            "0.yaml:6 Pod web $.spec.containers[0].image: expected a string, got true (written y); try 'y'",
            id="a letter that YAML takes for a boolean",
        ),
        pytest.param(
            "# one\n" + POD.replace("spec:", "spec:\n  nodeSelector: {a: true}"),
            "0.yaml:6 Pod web $.spec.nodeSelector.a: expected a string, got true; try 'true'",
            id="a boolean for a string",
        ),
        pytest.param(
            POD.replace("  containers:\n  - {name: c, image: x}", "  containers: {name: c}"),
            "0.yaml:5 Pod web $.spec.containers: expected a list, got an object with name",
            id="an object for a list",
        ),
        pytest.param(
            f"{POD}---\n{POD.replace('{name: web}', '{labels: {a: b}}')}",
            "0.yaml:10 Pod $.metadata.name: expected a name, got none",
            id="no name",
        ),
        pytest.param(
            "kind: Pod\nmetadata: {name: x}\n",
            "0.yaml:1 Pod x $.apiVersion: expected an object with apiVersion and kind, got no apiVersion; "
            "try 'apiVersion: v1'",
            id="no apiVersion",
        ),
        pytest.param(
            "apiVersion: v1\nmetadata: {name: x}\n",
            "0.yaml:1 object x $.kind: expected an object with apiVersion and kind, got no kind",
            id="no kind",
        ),
        pytest.param(
            "apiVersion: 1\nkind: Pod\n",
            "0.yaml:1 Pod $.apiVersion: expected a string, got 1",
            id="a number as version",
        ),
        pytest.param(
            "replicas: 3\n",
            "0.yaml:1 object: expected an object with apiVersion and kind, got neither; "
            "try apiVersion and kind, as in 'apiVersion: v1' and 'kind: Pod'",
            id="something else",
        ),
        pytest.param("- a\n- b\n", "0.yaml:1 document: expected an object, got a list of 2", id="a list"),
        pytest.param("words", "0.yaml:1 document: expected an object, got 'words'", id="a text"),
        pytest.param(
            "NAME   READY\nweb-1   1/1\n",
            "0.yaml:1 document: expected an object, got 'NAME   READY web-1   1/1'; try the output of kubectl get -o yaml",
            id="the table of kubectl get",
        ),
        pytest.param("", "0.yaml: expected at least one object, got a file without documents", id="an empty file"),
        pytest.param("# a\n---\n", "0.yaml: expected at least one object, got a file without documents", id="comments"),
        pytest.param(
            f"{POD}---\nkind: [\n",
            "0.yaml:8 broken YAML: did not find expected node content while parsing a flow node",
            id="broken YAML",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: 5\n",
            "0.yaml:7 Node $.metadata.name: expected a string, got 5; try '5'",
            id="in an item",
        ),
    ],
)
def test_invalid_manifests_are_refused_with_line_and_path(text: str, want: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_text(text, folder=tmp_path)
    assert str(caught.value).replace(f"{tmp_path}/", "") == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            POD.replace("image: x", "imagePullPolice: Always"),
            "unknown field: 0.yaml:6 Pod web $.spec.containers[0].imagePullPolice: unknown field; it has no effect; "
            "try 'imagePullPolicy'",
            id="an unknown field",
        ),
        pytest.param(
            POD.replace("spec:", "spec:\n  priority: 1\n  priority: 2"),
            "duplicate field: 0.yaml:6 Pod web: duplicate field 'priority'; the last one counts",
            id="a field twice",
        ),
        pytest.param(
            f"{POD}---\n{POD}",
            "duplicate object: 0.yaml:8 Pod default/web: also defined at 0.yaml:1; the later one is used",
            id="an object twice",
        ),
        pytest.param(
            f"{NODE}---\n{POD.replace('spec:', 'spec:' + chr(10) + '  nodeName: n2')}",
            "missing node: 0.yaml:6 Pod default/web $.spec.nodeName: bound to node 'n2', which is not in the input",
            id="a missing node",
        ),
        pytest.param(
            "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\n",
            "unknown kind: 0.yaml:1 Widget b/a: Kubernetes v1.36.3 has no example.org/v1 Widget; ignored",
            id="a custom resource",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: a}\n",
            "unknown kind: 0.yaml:1 Deploymnet a: Kubernetes v1.36.3 has no apps/v1 Deploymnet; ignored; "
            "try 'kind: Deployment'",
            id="a misspelt kind",
        ),
        pytest.param(
            "apiVersion: bayplan.io/v1alpha1\nkind: Autoscaler\n",
            "unknown kind: 0.yaml:1 Autoscaler: Kubernetes v1.36.3 has no bayplan.io/v1alpha1 Autoscaler; ignored; "
            "try simulate --autoscaler FILE",
            id="a file that is passed with an option",
        ),
        pytest.param(
            "apiVersion: bayplan.io/v1alpha1\nkind: trace\n",
            "unknown kind: 0.yaml:1 trace: Kubernetes v1.36.3 has no bayplan.io/v1alpha1 trace; ignored; "
            "try 'kind: Trace'",
            id="a misspelt kind of Bayplan",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n",
            "unknown kind: 0.yaml:1 Deployment a: Kubernetes v1.36.3 has no v1 Deployment; ignored; "
            "try 'apiVersion: apps/v1'",
            id="a kind in the wrong group",
        ),
        pytest.param(
            NODE.replace("name: n1", "name: n1, namespace: x"),
            "unknown field: 0.yaml:3 Node x/n1 $.metadata.namespace: a Node has no namespace; it has no effect",
            id="a namespace for a node",
        ),
    ],
)
def test_problems_return_warnings_and_are_refused_in_strict_mode(text: str, want: str, tmp_path: Path) -> None:
    assert warnings_of(load_text(text, folder=tmp_path), tmp_path) == [want]
    with pytest.raises(InputError, match="; refused because of --strict"):
        load_text(text, strict=True, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            "unused kind: 0.yaml:1 ConfigMap a: kube-scheduler does not read v1 ConfigMap; ignored",
            id="a kind that scheduling does not use",
        ),
        pytest.param(
            POD.replace("apiVersion: v1\nkind: Pod\n", ""),
            "inferred kind: 0.yaml:1 object web: neither apiVersion nor kind; read as Pod, which has these fields",
            id="a kind recognised by the shape",
        ),
        pytest.param(
            "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
            "inferred kind: 0.yaml:4 NodeList: items without kind in a NodeList; read as Node",
            id="a kind recognised by the list, once a file",
        ),
        pytest.param(
            POD.replace("name: web", "generateName: web-"),
            "generated name: 0.yaml:1 Pod web-: only generateName, no name; named 'web-00001'",
            id="a name made up",
        ),
    ],
)
def test_notes_are_accepted_in_strict_mode(text: str, want: str, tmp_path: Path) -> None:
    manifest = load_text(text, strict=True, folder=tmp_path)
    assert warnings_of(manifest, tmp_path) == [want]
    assert manifest.warnings[0].kind.is_note


def test_replaced_and_unknown_objects_are_preserved(tmp_path: Path) -> None:
    widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\nspec: {x: 1}\n"
    manifest = load_text(f"{POD}---\n{widget}---\n{POD.replace('image: x', 'image: z')}", folder=tmp_path)
    assert [pod.spec.containers[0].image for pod in manifest.pods] == ["z"]
    assert [each.source.line for each in manifest.replaced] == [1]
    (unused,) = manifest.unused
    assert (unused.kind, unused.namespace, unused.name, unused.document["spec"]) == ("Widget", "b", "a", {"x": 1})
    assert manifest.warning_counts() == {WarningKind.UNKNOWN_KIND: 1, WarningKind.DUPLICATE_OBJECT: 1}


def test_objects_with_equal_names_in_other_namespaces_or_kinds_are_distinct(tmp_path: Path) -> None:
    other = POD.replace("name: web", "name: web, namespace: other")
    node = NODE.replace("n1", "web")
    assert load_text("---\n".join((POD, other, node)), strict=True, folder=tmp_path).counts() == {"Pod": 2, "Node": 1}


def test_an_older_api_version_of_an_object_replaces_it(tmp_path: Path) -> None:
    new = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2}\n"
    old = new.replace("apps/v1", "extensions/v1beta1").replace("2", "3")
    manifest = load_text(f"{new}---\n{old}", folder=tmp_path)
    assert [each.spec.replicas for each in manifest.of(Deployment)] == [3]
    assert [each.kind for each in manifest.warnings] == [WarningKind.DUPLICATE_OBJECT]


def test_generated_names_are_numbered_across_files(tmp_path: Path) -> None:
    pod = POD.replace("name: web", "generateName: web-")
    manifest = load_text(f"{pod}---\n{pod}", pod, folder=tmp_path)
    assert [each.metadata.name for each in manifest.pods] == ["web-00001", "web-00002", "web-00003"]


def test_generated_names_differ_from_other_names(tmp_path: Path) -> None:
    long, pod = "x" * 58, POD.replace("name: web", "generateName: web-")
    texts = [
        POD.replace("name: web", "name: web-00001"),
        pod,
        pod.replace("generateName: web-", "generateName: web-, namespace: default"),
        *(POD.replace("name: web", f"generateName: {long}{end}-") for end in "ab"),
    ]
    manifest = load_text("---\n".join(texts), folder=tmp_path)
    names = ["web-00001", "web-00002", "web-00003", f"{long}00001", f"{long}00002"]
    assert [each.metadata.name for each in manifest.pods] == names


def test_generated_names_differ_from_names_that_follow(tmp_path: Path) -> None:
    generated = POD.replace("name: web", "generateName: web-")
    texts = [generated, generated, *(POD.replace("name: web", f"name: web-0000{n}") for n in (1, 3, 1))]
    manifest = load_text("---\n".join(texts), folder=tmp_path)
    assert [each.metadata.name for each in manifest.pods] == ["web-00004", "web-00002", "web-00003", "web-00001"]
    assert [each.split("; ")[-1] for each in warnings_of(manifest, tmp_path)] == [
        "named 'web-00004'",
        "named 'web-00002'",
        "the later one is used",
    ]


def test_equal_pods_share_spec_and_labels(tmp_path: Path) -> None:
    pods = [POD.replace("name: web", f"name: web-{n}, labels: {{app: web}}") for n in range(2)]
    first, second, third = load_text("---\n".join((*pods, POD.replace("image: x", "image: z"))), folder=tmp_path).pods
    assert first.spec is second.spec
    assert first.metadata.labels is second.metadata.labels
    assert third.spec is not first.spec
    assert [pod.key for pod in (first, second)] == ["default/web-0", "default/web-1"]


def test_standard_input_and_gzip_are_read_and_progress_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "n.json.gz"
    path.write_bytes(gzip.compress(b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'))
    seen: list[tuple[str, int]] = []
    manifest = load_inputs(
        ["-", str(path)], stdin=io.BytesIO(POD.encode()), progress=lambda name, count: seen.append((name, count))
    ).manifest
    assert manifest.files == ["<stdin>", str(path)]
    assert seen == [("<stdin>", 1), (str(path), 2)]


def test_loading_without_paths_is_refused() -> None:
    with pytest.raises(InputError, match="at least one file"):
        load_inputs([])


@pytest.mark.parametrize("enabled", [True, False])
def test_loading_restores_the_garbage_collector_state(enabled: bool, tmp_path: Path) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        load_text(POD, folder=tmp_path)
        assert gc.isenabled() == enabled
        with pytest.raises(InputError):
            load_text("kind: [", folder=tmp_path)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


# --- the gathered data ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("vgs: []", "not a Kubernetes object: it has neither apiVersion nor kind; ignored"),
        ("{apiGroup: v1, kind: Node}", "not a Kubernetes object: it has no apiVersion; ignored"),
    ],
)
def test_other_files_are_skipped_in_folders_and_refused_if_named_or_strict(
    tmp_path: Path, text: str, want: str
) -> None:
    (tmp_path / "other.yaml").write_text(text)
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}")
    for paths in ([str(tmp_path)], [str(tmp_path / "*.yaml")]):
        manifest = load_inputs(paths).manifest
        assert [each.metadata.name for each in manifest.pods] == ["p"]
        assert [(each.kind, each.problem) for each in manifest.warnings] == [(WarningKind.NO_OBJECT, want)]
    with pytest.raises(InputError, match="expected an object with apiVersion and kind"):
        load_inputs([str(tmp_path / "other.yaml")])
    with pytest.raises(InputError, match="not a Kubernetes object"):
        load_inputs([str(tmp_path)], strict=True)


NO_MANIFESTS = (
    "generator.yaml",
    "rangespec.yaml",
    "case-template.yaml",
    "pod-with-node-affinity.invalid-4672b9c9.yaml",
)
"""Files among the manifests that hold no valid objects of the API: inputs of other programs, and one that is wrong."""


def test_all_collected_manifests_load_except_the_known_invalid_ones() -> None:
    files = sorted(path for path in shared_path("data", "manifests").rglob("*") if path.is_file())
    refused: list[str] = []
    fields: list[str] = []
    for path in files:
        try:
            manifest = load_inputs([str(path)]).manifest
        except InputError as problem:
            refused.append(path.name if problem.where.startswith(str(path)) else str(problem))
            continue
        fields += [each.what.split("$")[-1] for each in manifest.warnings if each.kind is WarningKind.UNKNOWN_FIELD]
        assert len(manifest.loaded) + len(manifest.unused) + len(manifest.replaced) > 0
    assert len(files) == 177
    assert set(refused) == set(NO_MANIFESTS)
    assert set(fields) == {".spec.template.spec.containers[0].securityContext.allowPrivilegedEscalation"}


def test_an_insights_archive_of_objects_without_kind_is_loaded() -> None:
    folder = shared_path("data", "clusters", "openshift+insights-operator")
    manifest = load_inputs([str(folder)]).manifest
    assert (len(manifest.pods), len(manifest.nodes)) == (35, 2)
    assert (len(manifest.of(PersistentVolume)), len(manifest.of(StorageClass))) == (2, 1)
    assert all(pod.metadata.namespace for pod in manifest.pods)


def test_typed_lists_of_a_real_cluster_load() -> None:
    folder = shared_path("data", "clusters", "replicatedhq+troubleshoot", "pkg", "analyze", "files")
    assert len(load_inputs([str(folder / "nodes.json")]).manifest.of(Node)) == 7
    assert len(load_inputs([str(folder / "pods")]).manifest.of(Pod)) == 11
