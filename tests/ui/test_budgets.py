"""The page's budgets at 5,000 nodes, 50,000 pods and 500 changes per second: sizes are checked, times reported.

The results are written to build/page-budgets.json. Times depend on the other load of the machine.
"""

from __future__ import annotations

import json

from playwright.sync_api import Browser

from tests.ui.browsing import SCREENSHOTS
from tests.ui.fake_cluster import FakeCluster
from tests.ui.fake_service import FakeService, served
from tests.ui.measuring import measure

MAX_ELEMENTS = {"overview": 600, "nodes": 1000, "pods": 1200, "pod": 1500, "config": 800, "timeline": 1500}
MAX_HEAP_MEGABYTES = 50


def test_pages_stay_within_element_and_heap_limits(browser: Browser) -> None:
    cluster = FakeCluster(5_000, 50_000)
    pod = next(each for each in cluster.pods if each.status == "placed")
    with served(FakeService(cluster, changes=500)) as url:
        found = measure(browser, url, f"{pod.namespace}/{pod.name}", "trainer", seconds=5)
    SCREENSHOTS.parent.mkdir(exist_ok=True)
    (SCREENSHOTS.parent / "page-budgets.json").write_text(json.dumps(found, indent=1))
    over = {
        name: figures
        for name, figures in found.items()
        if figures.get("elements", 0) > MAX_ELEMENTS.get(name, 1500)
        or figures.get("heap_megabytes", 0) > MAX_HEAP_MEGABYTES
    }
    assert over == {}
    assert found["nodes"]["updates"] > 0
    assert found["pods"]["updates"] > 0
