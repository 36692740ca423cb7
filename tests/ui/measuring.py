"""Measure the page in the browser: time until it is ready, updates, long tasks, transfer, elements, heap.

`python -m tests.ui.measuring ADDRESS` measures a running server, such as `bayplan up` with a large cluster.
"""

from __future__ import annotations

import json
import sys
import time
from typing import cast
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from tests.ui.browsing import Visitor, chromium

OBSERVE = """() => {
  window.seen = { long: [], shift: 0, marks: [] };
  const watch = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type });
  watch("longtask", (each) => seen.long.push(each.duration));
  watch("layout-shift", (each) => { if (!each.hadRecentInput) seen.shift += each.value; });
  watch("mark", (each) => seen.marks.push([each.name, performance.timeOrigin + each.startTime, each.detail]));
}"""
COSTS = """() => {
  const all = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")];
  const files = all.filter((each) => each.name.includes("/static/"));
  return {
    requests: all.length - files.length,
    files: files.length,
    kilobytes: Math.round(all.reduce((sum, each) => sum + each.transferSize, 0) / 1024),
    elements: document.querySelectorAll("*").length,
    heap_megabytes: Math.round(performance.memory.usedJSHeapSize / 1048576),
  };
}"""
READY = "html:not(:has([data-test=loading])):not(:has(.grid-row.pending)):not(:has(.grid-body:empty))"
"""Matches a ready page: one without placeholders.

Its requests cannot show this, because a live page may always send some.
"""

NEWEST = """(names) => Object.fromEntries(
  names.map((name) => [name, performance.getEntriesByName(name).at(-1)?.startTime ?? -1]))"""

CLICKED = ["go", "verdict painted", "matrix ready"]

Figures = dict[str, float]


def percentile(values: list[float], part: float) -> float:
    """Return a percentile of values by nearest rank; -1 if there are none."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 1) if ordered else -1.0


def costs(page: Page) -> Figures:
    """Return the costs of an open page so far."""
    return cast("Figures", page.evaluate(COSTS))


def opened(browser: Browser, url: str, path: str) -> tuple[Figures, Visitor]:
    """Open a page in a fresh browser context; return its costs until it is complete, and the visitor."""
    visitor = Visitor(browser, url, expected=(".*",))
    visitor.page.goto(url + path)
    visitor.page.wait_for_selector("h1:visible")
    visitor.page.wait_for_selector(READY)
    ready = visitor.page.evaluate("performance.now()")
    return {"ready_ms": round(float(ready)), **costs(visitor.page)}, visitor


def steady(visitor: Visitor, seconds: float, frame: str, painted: str) -> Figures:
    """Measure a live page: the delays from the server's time in a frame to the next paint, and long tasks."""
    page = visitor.page
    page.evaluate(OBSERVE)
    page.wait_for_timeout(seconds * 1000)
    seen = page.evaluate("() => seen")
    delays, sent = [], 0.0
    for name, at, detail in seen["marks"]:
        if name == frame and not sent:
            sent = page.evaluate("(at) => Date.parse(at)", detail)
        elif name == painted and sent:
            delays.append(at - sent)
            sent = 0.0
    return {
        "updates": len(delays),
        "update_p50_ms": percentile(delays, 0.5),
        "update_p95_ms": percentile(delays, 0.95),
        "tasks_over_100_ms": sum(each > 100 for each in seen["long"]),
        "share_of_them_percent": round(sum(each for each in seen["long"] if each > 100) / seconds / 10, 2),
        "layout_shift": round(float(seen["shift"]), 3),
    }


def clicks(visitor: Visitor, count: int) -> Figures:
    """Click on pods of the table in turn; measure the times until the headline and until the matrix are shown."""
    page = visitor.page
    verdicts, matrices = [], []
    for number in range(count):
        page.locator("[data-test=pod-table] .grid-body .grid-row:not([hidden]) .cell:nth-child(2) a").nth(
            3 * number
        ).click()
        marks = page.evaluate(NEWEST, CLICKED)
        while marks["matrix ready"] < marks["go"] or marks["verdict painted"] < marks["go"]:
            page.wait_for_timeout(20)
            marks = page.evaluate(NEWEST, CLICKED)
        verdicts.append(marks["verdict painted"] - marks["go"])
        matrices.append(marks["matrix ready"] - marks["go"])
        page.go_back()
        page.wait_for_selector("[data-test=pod-table] a.name")
    return {
        "verdict_p50_ms": percentile(verdicts, 0.5),
        "verdict_max_ms": round(max(verdicts), 1),
        "matrix_p50_ms": percentile(matrices, 0.5),
        "matrix_max_ms": round(max(matrices), 1),
    }


def filtering(visitor: Visitor, text: str) -> Figures:
    """Type into the filter of the table; measure the time until the matching rows are shown."""
    page = visitor.page
    page.locator("[data-search]").focus()
    began = time.perf_counter()
    page.keyboard.insert_text(text)
    page.wait_for_selector(f".grid-body .grid-row:not([hidden]) a.name:text('{text}')")
    return {"filter_ms": round((time.perf_counter() - began) * 1000)}


def measure(browser: Browser, url: str, pod: str, text: str, *, seconds: float = 12.0) -> dict[str, Figures]:
    """Measure the pages that have budgets.

    Args:
        browser: The running browser.
        url: The URL of the server.
        pod: A pod in the form namespace/name.
        text: A text that the names of some pods contain.
        seconds: The time for which live pages are watched.
    """
    found: dict[str, Figures] = {}
    paths = {"overview": "/ui/", "config": "/ui/config", "timeline": "/ui/timeline", "pod": f"/ui/pods/{pod}"}
    for name, path in paths.items():
        found[name], visitor = opened(browser, url, path)
        visitor.context.close()
    found["nodes"], visitor = opened(browser, url, "/ui/nodes")
    found["nodes"] |= steady(visitor, seconds, "frame nodes:cpu", "cells painted")
    visitor.context.close()
    found["pods"], visitor = opened(browser, url, "/ui/pods")
    found["pods"] |= steady(visitor, seconds, "frame pods", "grid painted")
    found["pods"] |= filtering(visitor, text)
    visitor.page.goto(f"{url}/ui/pods")
    visitor.page.wait_for_selector("[data-test=pod-table] a.name")
    found["click on a pod"] = clicks(visitor, 5)
    visitor.context.close()
    return found


def main(url: str) -> None:
    """Measure a running server and print the results."""
    import httpx

    pod = httpx.get(f"{url}/bayplan/v1/pods?limit=1&status=placed&sort=-name").json()["items"][0]
    key = f"{pod['namespace']}/{pod['name']}"
    with chromium() as browser:
        print(json.dumps(measure(browser, url, key, pod["name"][-5:]), indent=1))


if __name__ == "__main__":
    main(f"http://{urlsplit(sys.argv[1]).netloc}")
