"""Durability: acknowledged writes survive a restart, even after the process was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError


def fail(problem: Exception) -> None:
    raise AssertionError(problem)


def put(store: Store, name: str, raw: bytes = b"{}") -> None:
    store.put("pods", Item(raw, store.revision + 1, "a", name, "u", {"app": "x"}, {"spec.nodeName": "n"}))


def reopened(path: Path) -> Store:
    store = Store()
    DurableRecorder(path, store, on_failure=fail).close()
    return store


def test_documents_and_the_revision_counter_survive_a_reopen(tmp_path: Path) -> None:
    path, store = tmp_path / "store", Store()
    recorder = DurableRecorder(path, store, on_failure=fail)
    put(store, "x", b'{"a":1}')
    put(store, "y")
    found = store.get("pods", ("a", "y"))
    assert found is not None
    store.remove("pods", Item(found.raw, 3, "a", "y", "u", {}, {}))
    recorder.close()
    again = reopened(path)
    assert again.between("pods") == [Item(b'{"a":1}', 1, "a", "x", "u", {"app": "x"}, {"spec.nodeName": "n"})]
    assert (again.revision, again.published, again.compacted) == (3, 3, 3)


@pytest.mark.parametrize(
    ("batches", "want"),
    [
        pytest.param([["+x", "+y"]], 2, id="after creations the last one's revision"),
        pytest.param([["+x", "+y"], ["-y"]], 3, id="after a removal the removal's, which no row has"),
        pytest.param(
            [["+x"], ["-x", "+y"], ["+x", "-x"]], 5, id="after creation and removal in one batch the removal's"
        ),
        pytest.param([["+x"], ["-x"], ["+y"]], 3, id="after a creation later than a removal the creation's"),
        pytest.param([[f"+p{number}" for number in range(250)]], 250, id="after more rows than one statement takes"),
    ],
)
def test_the_last_revision_survives_a_reopen(batches: list[list[str]], want: int, tmp_path: Path) -> None:
    store = Store()
    recorder = DurableRecorder(tmp_path / "store", store, on_failure=fail)
    for batch in batches:
        for action, name in ((each[0], each[1:]) for each in batch):
            if action == "+":
                put(store, name)
            else:
                store.remove("pods", Item(b"{}", store.revision + 1, "a", name, "u", {}, {}))
        recorder.flush()
    recorder.close()
    assert reopened(tmp_path / "store").revision == want


def test_writes_are_published_in_one_batch_once_they_are_on_disk(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store()
        recorder = DurableRecorder(tmp_path / "store", store, on_failure=fail)
        seen: list[int] = []
        store.listen("pods", lambda write: seen.append(write.revision), lambda: None)
        for number in range(50):
            put(store, f"p{number}")
        assert store.published == 0
        assert seen == []
        waiting = recorder.until_durable(50)
        assert waiting is not None
        await waiting
        assert seen == list(range(1, 51))
        assert recorder.until_durable(50) is None
        recorder.close()

    asyncio.run(run())
    assert len(reopened(tmp_path / "store").between("pods")) == 50


def test_a_restored_snapshot_is_durable(tmp_path: Path) -> None:
    store = Store()
    recorder = DurableRecorder(tmp_path / "store", store, on_failure=fail)
    put(store, "x")
    recorder.flush()
    snapshot = store.snapshot()
    put(store, "y")
    store.restore(snapshot)
    recorder.close()
    assert [each.name for each in reopened(tmp_path / "store").between("pods")] == ["x"]


def test_a_foreign_database_and_a_store_in_use_are_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(InputError, match="another program's database"):
        DurableRecorder(tmp_path / "other", Store(), on_failure=fail)
    recorder = DurableRecorder(tmp_path / "mine", Store(), on_failure=fail)
    with pytest.raises(InputError, match="another process has locked"):
        DurableRecorder(tmp_path / "mine", Store(), on_failure=fail)
    recorder.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Store

async def main():
    store = Store()
    recorder = DurableRecorder(Path(sys.argv[1]), store, on_failure=print)
    number = 0
    while True:
        for _ in range(7):
            store.put("pods", Item(b"{}" * 200, store.revision + 1, "a", f"p{number % 500}", "u", {}, {}))
            number += 1
        await recorder.until_durable(store.revision)
        print(store.revision, flush=True)

asyncio.run(main())
"""


def test_a_killed_process_loses_no_acknowledged_write(tmp_path: Path) -> None:
    path = tmp_path / "store"
    last = 0
    for lines in (3, 40, 11):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            acknowledged = [int(process.stdout.readline()) for _ in range(lines)]
            os.kill(process.pid, signal.SIGKILL)
        assert acknowledged[0] > last
        store = reopened(path)
        assert store.revision >= acknowledged[-1]
        assert max(each.revision for each in store.between("pods")) == store.revision
        last = store.revision
        store.check_invariants()
