"""Two simulators with different schedulers follow one source; the page shows their delay and which pods differ."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor
from tests.ui.cloud_names import cloud_name
from tests.ui.running import PATIENCE_SECONDS, Running, node, pod, running
from tests.ui.test_real_journeys import MOST_ALLOCATED

Visit = Callable[..., Visitor]

PODS = 24


class Followed(NamedTuple):
    """A source, and the two simulators that sync it."""

    source: Running
    spread: Running
    packed: Running


@contextmanager
def syncing(source: Path, target: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `bayplan sync` between two servers, by their folders, until the block ends."""
    command = [sys.executable, "-m", "bayplan", "sync", "--from", str(source / "kubeconfig"), "--to"]
    with (target / "sync.log").open("wb") as log:
        process = subprocess.Popen([*command, str(target / "kubeconfig")], stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    """Yield a source that only keeps objects, and two simulators that follow it; the second packs nodes."""
    folders = [tmp_path / name for name in ("source", "spread", "packed")]
    for folder in folders:
        folder.mkdir()
    packing = tmp_path / "packing.yaml"
    packing.write_text(MOST_ALLOCATED)
    alone = ("--no-scheduler", "--no-controllers", "--no-kubelet")
    nodes = [node(cloud_name(number), "abc"[number % 3]) for number in range(6)]
    with ExitStack() as open_now:
        source = open_now.enter_context(running(folders[0], nodes, *alone, settled=False))
        spread = open_now.enter_context(running(folders[1], [], settled=False))
        packed = open_now.enter_context(running(folders[2], [], "--config", str(packing), settled=False))
        for folder in folders[1:]:
            open_now.enter_context(syncing(folders[0], folder))
        yield Followed(source, spread, packed)


def create_pods(source: Running, first: int, count: int) -> None:
    """Create pods at the source."""
    for number in range(first, first + count):
        answer = httpx.post(f"{source.url}/api/v1/namespaces/default/pods", json=pod(f"work-{number:02}"), timeout=30)
        answer.raise_for_status()


def placed(server: Running) -> dict[str, str]:
    """Return the nodes of the pods that have one."""
    items = server.get(f"/pods?limit={2 * PODS}&status=placed")["items"]
    assert isinstance(items, list)
    return {item["name"]: item["node"] for item in items}


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    for _ in range(PATIENCE_SECONDS * 10):
        if is_so():
            return
        time.sleep(0.1)
    raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}")


def test_two_simulators_that_sync_one_source_are_compared(followed: Followed, visit: Visit) -> None:
    source, spread, packed = followed
    create_pods(source, 0, PODS)
    for each in (spread, packed):
        wait_for(lambda server=each: len(placed(server)) == PODS, f"{each.url} has placed all pods")  # type: ignore[misc]
    visitor = visit(spread.url)
    visitor.go("/ui/sources")
    expect(visitor.page.locator("h1")).to_contain_text("Syncs with")
    expect(visitor.page.locator("h1")).to_contain_text("less than a second behind")
    expect(visitor.test("error")).to_have_count(0)
    visitor.shoot("real-sources-followed")

    differ = {name for name, at in placed(spread).items() if placed(packed)[name] != at}
    assert differ
    visitor.go(f"/ui/compare?a=now&b={packed.url}")
    expect(visitor.page.locator("h1")).to_contain_text(f"{len(differ)} of {PODS} pods differ")
    expect(visitor.test("following").locator(".strong")).to_have_text(["A ", "B "])
    expect(visitor.test("following")).to_contain_text("less than a second behind")
    visitor.shoot("real-two-followers-compared")
    first = min(differ)
    visitor.test("compare-table").locator("a.name", has_text=first).click()
    visitor.still()
    expect(visitor.page.locator("h1")).to_have_text(
        f"default/{first} runs on {placed(spread)[first]} in A, on {placed(packed)[first]} in B"
    )
    winners = visitor.page.locator(".mrow.winner .name")
    expect(winners).to_have_text([placed(spread)[first], placed(packed)[first]])
    visitor.shoot("real-two-matrices")

    # A new object arrives in both simulators, and the open page shows it.
    visitor.go("/ui/pods?q=work")
    create_pods(source, PODS, 1)
    expect(visitor.page.locator("h1")).to_contain_text(f"{PODS + 1} pods")
