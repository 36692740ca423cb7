"""The commands of the documentation run: each `bayplan` line in a shell block, unless it needs a cluster or never ends."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bayplan.app.sources.api_source import LISTED_KINDS
from bayplan.cli.main import main
from bayplan.examples import example_path
from bayplan.objects.kinds import kind_of
from tests.project.tree import ROOT

BLOCK = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name != "cli.md")])
OWN_TESTS = {
    "docs/messages.md": "tests/project/test_messages.py",
    "docs/gpu-sharing.md": "tests/project/test_snippets.py",
    "docs/planning.md": "tests/project/test_planning_page.py",
    "docs/questions.md": "tests/project/test_questions_page.py",
    "docs/reports.md": "tests/project/test_snippets.py",
    "docs/scenarios.md": "tests/project/test_snippets.py",
    "docs/sweeps.md": "tests/project/test_snippets.py",
    "docs/tutorial.md": "tests/project/test_tutorial.py",
    "docs/tutorial-ci.md": "tests/project/test_run_pages.py",
    "docs/tutorial-import.md": "tests/app/test_tutorial_import.py",
    "docs/tutorial-node-group.md": "tests/project/test_run_pages.py",
    "docs/tutorial-weights.md": "tests/project/test_weights_tutorial.py",
}
"""Pages whose commands run in a test of their own, some with inputs of the test: traces of others, a sweep of minutes."""

ELSEWHERE = {
    "extender": "serves until it is stopped: tests/cli/test_extender.py",
    "import": "needs a cluster: tests/app/test_tutorial_import.py",
    "record": "needs a cluster: tests/app/test_cluster_sync.py",
    "replay": "needs a recording: tests/cli/test_replay.py",
    "schedule": "needs a cluster: tests/app/test_live_scheduler.py",
    "sync": "needs a cluster: tests/app/test_cluster_sync.py",
}
"""Commands that can't run here, with the reason and a test that runs them."""

NEEDS_CLUSTER = re.compile(r"--context|http://")


def commands(page: str) -> list[str]:
    """Return the `bayplan` lines of the shell blocks of a page, without comments."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    lines = [
        line.strip().removeprefix("$ ").partition(" #")[0].strip() for block in blocks for line in block.splitlines()
    ]
    return [line.removesuffix("&").strip() for line in lines if line.startswith("bayplan ")]


def local_commands() -> list[tuple[str, str]]:
    found = [(page, command) for page in PAGES if page not in OWN_TESTS for command in commands(page)]
    return [
        (page, command)
        for page, command in found
        if command.split()[1] not in ELSEWHERE and not NEEDS_CLUSTER.search(command)
    ]


def pod(name: str, memory: str, node: str = "") -> dict[str, object]:
    """Return a pod as kubectl prints it: running on a node, or pending."""
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1", "memory": memory}}}
    spec = {"containers": [container]} | ({"nodeName": node} if node else {})
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "creationTimestamp": "2026-05-01T10:00:00Z"}
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def dump() -> dict[str, object]:
    """Return what `kubectl get nodes,pods -A -o yaml` prints of a cluster with one node and a pod that waits."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-7", "uid": "uid-node-7", "creationTimestamp": "2026-05-01T09:00:00Z"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [node, pod("web-0", "6Gi", "node-7"), pod("web-1", "4Gi")]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the pages name."""
    made = tmp_path_factory.mktemp("pages")
    files = sorted(example_path().glob("*.yaml"))
    (made / "cluster.yaml").write_text(
        "---\n".join(file.read_text(encoding="utf-8") for file in files), encoding="utf-8"
    )
    shutil.copy(made / "cluster.yaml", made / "my-cluster.yaml")
    (made / "dump.yaml").write_text(yaml.safe_dump(dump()), encoding="utf-8")
    (made / "deploy").mkdir()
    shutil.copy(ROOT / "examples" / "tutorial" / "archive.yaml", made / "deploy")
    scheduler = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (made / "scheduler.yaml").write_text(yaml.safe_dump(scheduler), encoding="utf-8")
    shutil.copy(ROOT / "src" / "bayplan" / "contrib" / "gang.py", made)
    plugin = re.findall(
        r"```python\n(.*?)^nodes = ", (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8"), re.S | re.M
    )
    (made / "my_plugin.py").write_text(plugin[0], encoding="utf-8")
    for name in ("examples", "conformance"):
        (made / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "bayplan", "simulate", str(example_path()), "--out", "result"]
    subprocess.run(command, cwd=made, check=True, capture_output=True)
    return made


COMMANDS = local_commands()


@pytest.mark.parametrize(("page", "command"), [pytest.param(*each, id=" ".join(each)[:90]) for each in COMMANDS])
def test_commands_in_documentation_pages_run(
    page: str, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = shlex.split(command.replace("$(bayplan example)", str(example_path())))[1:]
    if words[0] == "simulate" and "--out" in words:
        words[words.index("--out") + 1] = f"result-{len(list(folder.iterdir()))}"
    if words[0] != "up":
        # Exit code 1 is also a valid result here: pods lose their nodes, or wait.
        assert main(words) in ((0, 1) if words[0] in ("what-if", "waiting") else (0,)), capfd.readouterr().err
        return
    # A server would run forever: run it on a free port, and end it after its report.
    if "--port" in words:
        del words[words.index("--port") : words.index("--port") + 2]
    ended = [*words, *(["--once"] if "--once" not in words else []), "--port", "0"]
    ended += [] if "--write-kubeconfig" in words else ["--write-kubeconfig", "made.kubeconfig"]
    ran = subprocess.run([sys.executable, "-m", "bayplan", *ended], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/unblock.md"])
def test_documented_dump_command_lists_all_required_kinds(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", "")
    (kinds,) = re.findall(r"^kubectl get -A -o yaml (\S+) > dump.yaml$", text, re.MULTILINE)
    read = {kind_of(struct) for struct in LISTED_KINDS}
    optional = {kind.plural for kind in read if kind.group == "resource.k8s.io" or kind.plural == "podgroups"}
    assert set(kinds.split(",")) == {kind.plural for kind in read} - optional


def test_pages_have_commands_and_referenced_tests_exist() -> None:
    assert len(COMMANDS) > 25
    assert {page for page, _ in COMMANDS} >= {"README.md", "docs/index.md", "docs/results.md", "docs/unblock.md"}
    named = [*OWN_TESTS.values(), *(reason.rpartition(" ")[2] for reason in ELSEWHERE.values())]
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [page for page, test in OWN_TESTS.items() if Path(page).stem not in (ROOT / test).read_text("utf-8")] == []
