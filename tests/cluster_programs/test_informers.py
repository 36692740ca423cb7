"""client-go's shared informers follow Bayplan's API: initial objects, changes in order, and a server that restarts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bayplan.apiserver.http.server import ApiServer
from tests.apiserver.client import MERGE
from tests.apiserver.serving import Document, call, serving
from tests.cluster_programs.programs import kubeconfig, program
from tests.cluster_programs.test_kube_scheduler import PODS, node, pod


class Informers:
    """The program that watches pods and nodes, and prints its notifications."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        command = [program("informers"), kubeconfig(server, folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[Document] = []

    def until(self, wanted: Callable[[Document], bool]) -> list[tuple[str, str, str]]:
        """Read up to the wanted line, and return the notifications up to it."""
        assert self._process.stdout is not None
        first = len(self.lines)
        for text in self._process.stdout:
            line = json.loads(text)
            self.lines.append(line)
            if wanted(line):
                break
        else:
            pytest.fail(f"the program has ended: {self.lines}")
        return [(each.get("resource", ""), each["event"], each.get("name", "")) for each in self.lines[first:]]

    def end(self) -> Document:
        """End the program, and return what its caches held."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.until(lambda line: line["event"] == "ended")
        assert self._process.wait(30) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self.lines[-1]


def test_informers_receive_initial_objects_and_every_change_in_order(tmp_path: Path) -> None:
    with serving([node("n1"), pod("before")]) as server:
        informers = Informers(server, tmp_path)
        begun = informers.until(lambda line: line["event"] == "synced")
        assert sorted(begun) == [("", "synced", ""), ("nodes", "added", "n1"), ("pods", "added", "before")]
        for number in range(300):
            call(server, "POST", PODS, pod(f"pod-{number:03}"))
        reported = informers.until(lambda line: line.get("name") == "pod-299")
        assert reported == [("pods", "added", f"pod-{number:03}") for number in range(300)]
        call(server, "PATCH", f"{PODS}/before", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert informers.until(lambda line: True) == [("pods", "updated", "before")]
        call(server, "DELETE", f"{PODS}/before")
        # Deleting a pod that never ran first updates it (its generation increases), then removes it.
        assert informers.until(lambda line: line["event"] == "deleted")[-1] == ("pods", "deleted", "before")
        call(server, "DELETE", f"{PODS}?fieldSelector=metadata.name%3Dpod-007")
        assert informers.until(lambda line: line["event"] == "deleted")[-1] == ("pods", "deleted", "pod-007")
        versions = [int(line["version"]) for line in informers.lines if line.get("resource") == "pods"]
        assert versions == sorted(versions)
        last = informers.end()
        assert last["nodes"] == ["n1"]
        assert last["pods"] == [f"default/pod-{number:03}" for number in range(300) if number != 7]


def test_informers_continue_after_a_restart_of_a_durable_server(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with serving([node("n1"), pod("kept"), pod("gone")], store=store) as server:
        port = int(server.url.rpartition(":")[2])
        informers = Informers(server, tmp_path)
        informers.until(lambda line: line["event"] == "synced")
    with serving(store=store) as hidden:
        # No watch is open during these changes.
        call(hidden, "DELETE", f"{PODS}/gone")
        call(hidden, "POST", PODS, pod("new"))
    with serving(store=store, at=port) as server:
        reported = informers.until(lambda line: line["event"] == "deleted" or line.get("name") == "new")
        reported += informers.until(lambda line: line["event"] == "deleted" or line.get("name") == "new")
        assert sorted(each for each in reported if each[1] in ("added", "deleted")) == [
            ("pods", "added", "new"),
            ("pods", "deleted", "gone"),
        ]
        assert informers.end()["pods"] == ["default/kept", "default/new"]
        assert server.backend.store.revision > 0
