"""Take screenshots of every page of `bayplan up` on a realistic cluster: light and dark, desktop and 390 pixels wide.

`python -m tests.ui.screenshots` writes them to build/screenshots/cloud. `--style eks` gives all nodes names of one cloud,
`--only pod` takes pages with this prefix, `--sheets` adds contact sheets, `--docs` writes the pictures in docs/images
instead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import httpx
import yaml
from playwright.sync_api import Browser

from tests.ui.browsing import SCREENSHOTS, Theme, Visitor, chromium
from tests.ui.cloud_cluster import cloud_cluster, imported_cluster, urgent_pod
from tests.ui.cloud_names import STYLES
from tests.ui.running import Running, running

FOLDER = SCREENSHOTS / "cloud"
IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
THEMES: tuple[Theme, ...] = ("light", "dark")
WIDTHS = {"wide": (1366, 768), "phone": (390, 844)}
IN_DOCS = {"pod": "pod-waiting", "matrix": "pod-placed"}
"""The pictures in the documentation by file name: the page that each shows, in light, with one cloud's node names."""
DOCS_SIZE = (1180, 660)
ANY_DISK = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    filter:
      disabled:
      - name: NodeAffinity
"""


class Names(NamedTuple):
    """Names of objects in this run that the addresses of pages contain."""

    placed: str
    node: str
    loser: str
    fork: str
    moved: str


PAGES = {
    "overview": "/",
    "nodes": "/nodes",
    "node": "/nodes/{node}",
    "pods": "/pods",
    "pods-waiting": "/pods?status=waiting",
    "pods-none": "/pods?q=nothing-like-this&namespace=shop",
    "pod-placed": "/pods/{placed}",
    "pod-cell": "/pods/{placed}?cell={loser}.NodeResourcesBalancedAllocation",
    "pod-waiting": "/pods/ml-train/trainer-resnet50-distributed-worker-0",
    "pod-waiting-cell": "/pods/ml-train/trainer-resnet50-distributed-worker-0?cell={node}.NodeResourcesFit",
    "pod-gated": "/pods/batch/batch-settlement-28471935-9fq4c",
    "pod-imported": "/pods/legacy/legacy-billing-6f5d4c7b8-2xk9q",
    "pod-unconfigured": "/pods/default/spark-driver-monthly-report-7d9f8b6c5d",
    "pod-help": "/pods/ml-train/feature-store-compaction-28471920-x7kq2?tab=unblock",
    "pod-help-node": "/pods/ml-train/feature-store-compaction-28471920-x7kq2?tab=unblock&node={node}",
    "pod-capacity": "/pods/ml-train/feature-store-compaction-28471920-x7kq2?tab=capacity",
    "pod-attempts": "/pods/ml-train/trainer-resnet50-distributed-worker-0?tab=attempts",
    "pod-preemption": "/pods/default/postgres-primary-failover-0?tab=preemption&attempt=1",
    "pod-preempted": "/pods/default/postgres-primary-failover-0?tab=attempts",
    "pod-events": "/pods/ml-train/trainer-resnet50-distributed-worker-0?tab=events",
    "pod-yaml": "/pods/{placed}?tab=yaml",
    "queue": "/queue?tier=unschedulable",
    "timeline": "/timeline",
    "what-if": "/what-if",
    "what-if-drain": "/what-if?changes=drain%3D{node}%0Alose-zone%3Deu-west-1b",
    "what-if-weight": "/what-if?changes=weight%3DNodeResourcesFit%3A9&reschedule=*",
    "unblock": "/unblock?of=pod/ml-train/feature-store-compaction-28471920-x7kq2",
    "unblock-start": "/unblock",
    "capacity": "/capacity?of=deployment/shop/checkout",
    "capacity-mix": "/capacity?of=deployment/shop/checkout%3D3,payments-api&preempt=1",
    "config": "/config",
    "config-effective": "/config/effective",
    "plugins": "/plugins",
    "create": "/new?kind=Pod",
    "objects": "/objects/core/v1/nodes",
    "object": "/workloads/deployment/shop/checkout",
    "compare-start": "/compare",
    "compare": "/compare?a=now&b={fork}",
    "compare-pod": "/compare/{moved}?a=now&b={fork}",
    "sources": "/sources",
    "settings": "/settings",
    "keys": "/keys",
    "palette": "/pods",
}


@contextmanager
def cloud_server(style: str) -> Iterator[Running]:
    """Run `bayplan up` with the cluster, import manifests into it, and create a pod that preempts others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, cloud_cluster(style)) as server:
            (folder / "dump.yaml").write_text(yaml.safe_dump_all(imported_cluster()))
            command = [sys.executable, "-m", "bayplan", "import", "dump.yaml", "--to", str(folder / "kubeconfig")]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            priority, urgent = urgent_pod()
            for path, made in (
                ("/apis/scheduling.k8s.io/v1/priorityclasses", priority),
                ("/api/v1/namespaces/default/pods", urgent),
            ):
                httpx.post(server.url + path, json=made, timeout=30).raise_for_status()
            while server.get("/pods/default/postgres-primary-failover-0")["status"] != "placed":
                time.sleep(0.1)
            yield server


def names_of(server: Running) -> Names:
    """Return a placed pod, two of its matrix' nodes, a fork without NodeAffinity, and a pod that only it placed."""
    items = cast("list[dict[str, str]]", server.get("/pods?q=checkout&status=placed")["items"])
    placed = f"{items[0]['namespace']}/{items[0]['name']}"
    rows = cast("dict[str, list[str]]", server.get(f"/pods/{placed}/attempts/latest/matrix?form=columns")["rows"])
    body = {"from": "now", "config": ANY_DISK}
    fork = str(httpx.post(f"{server.url}/bayplan/v1/forks", json=body, timeout=60).raise_for_status().json()["id"])
    while next(each for each in cast("list[dict[str, str]]", server.get("/forks")["items"]))["state"] == "running":
        pass
    moved = cast("list[dict[str, str]]", server.get(f"/compare?a=now&b={fork}&kind=only_b")["items"])
    return Names(placed, rows["node"][0], rows["node"][3], fork, moved[0]["pod"] if moved else placed)


def shoot_pages(browser: Browser, server: Running, names: Names, only: Sequence[str]) -> list[str]:
    """Take screenshots of every page in all sizes and themes; return the names of the pages."""
    chosen = [page for page in PAGES if not only or any(page.startswith(each) for each in only)]
    for width, (across, down) in WIDTHS.items():
        visitor = Visitor(browser, server.url, expected=(".*",))
        visitor.page.set_viewport_size({"width": across, "height": down})
        for page in chosen:
            visitor.go("/ui" + PAGES[page].format(**names._asdict()))
            if page == "palette":
                visitor.page.keyboard.press("Control+k")
                visitor.test("palette-field").fill("vmss")
                visitor.page.wait_for_timeout(300)
            for theme in THEMES:
                visitor.page.emulate_media(color_scheme=theme)
                visitor.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 80)))")
                visitor.page.screenshot(path=FOLDER / f"{page}-{width}-{theme}.png")
        visitor.context.close()
    return chosen


def shoot_docs(browser: Browser, server: Running, names: Names) -> None:
    """Take the screenshots of the documentation."""
    visitor = Visitor(browser, server.url, expected=(".*",))
    visitor.page.set_viewport_size({"width": DOCS_SIZE[0], "height": DOCS_SIZE[1]})
    for name, page in IN_DOCS.items():
        visitor.go("/ui" + PAGES[page].format(**names._asdict()))
        visitor.page.mouse.move(0, 0)
        visitor.page.screenshot(path=IMAGES / f"{name}.png")
    visitor.context.close()


def sheet(browser: Browser, name: str, files: Sequence[Path], columns: int, width: int) -> None:
    """Combine screenshots into a contact sheet."""
    images = "".join(
        f'<figure><img src="{file.as_uri()}"><figcaption>{file.stem}</figcaption></figure>' for file in files
    )
    style = (
        f"body{{margin:0;display:grid;grid-template-columns:repeat({columns},{width}px);gap:8px;background:#888;"
        "font:12px sans-serif}figure{margin:0}img{width:100%;display:block}"
    )
    html = FOLDER / f"{name}.html"
    html.write_text(f"<style>{style}</style>{images}")
    page = browser.new_page(viewport={"width": columns * (width + 8), "height": 400})
    page.goto(html.as_uri())
    page.screenshot(path=FOLDER / f"{name}.png", full_page=True)
    page.close()


def main(arguments: Sequence[str]) -> None:
    """Take the screenshots that the arguments request."""
    parser = argparse.ArgumentParser(prog="python -m tests.ui.screenshots", description=__doc__)
    parser.add_argument("--style", default="mixed", choices=["mixed", *STYLES])
    parser.add_argument("--only", action="append", default=[], metavar="PAGE")
    parser.add_argument("--sheets", action="store_true")
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.docs:
        with cloud_server("eks") as server, chromium() as browser:
            shoot_docs(browser, server, names_of(server))
        return
    with cloud_server(options.style) as server, chromium() as browser:
        pages = shoot_pages(browser, server, names_of(server), options.only)
        if options.sheets:
            for at in range(0, len(pages), 4):
                group = pages[at : at + 4]
                files = [FOLDER / f"{page}-phone-{theme}.png" for theme in THEMES for page in group]
                sheet(browser, f"sheet-phone-{at // 4}", files, 4, 390)
    print(FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
