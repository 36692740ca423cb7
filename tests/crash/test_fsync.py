"""Acknowledged writes have been flushed to disk, which a kill cannot show, but a count of the flushes can.

`tests.crash.sync_counter` counts the flushes that SQLite requests; strace counts the system calls.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.missing import installed

ROOT = Path(__file__).resolve().parents[2]
WRITES = 40
LONE_WRITES = """
import asyncio, sys
from pathlib import Path
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Store
from tests.crash.sync_counter import SyncCounter

async def main():
    counter, store = SyncCounter(), Store()
    recorder = DurableRecorder(Path(sys.argv[1]), store, on_failure=print)
    together = int(sys.argv[3])
    for number in range(int(sys.argv[2])):
        store.put("pods", Item(b"{}", store.revision + 1, "a", f"p{number}", "u", {}, {}))
        if (number + 1) % together == 0:
            before = counter.syncs["log"]
            await recorder.until_durable(store.revision)
            assert counter.syncs["log"] > before, f"write {number} was acknowledged without a flush"
    print(counter.syncs["log"])
    recorder.close()

asyncio.run(main())
"""
PROGRAM = [sys.executable, "-c", LONE_WRITES]


@pytest.mark.parametrize(
    ("together", "want"),
    [
        pytest.param(1, WRITES, id="of writes one after the other each is flushed"),
        pytest.param(10, WRITES // 10, id="ten writes at a time share a flush"),
    ],
)
def test_writes_are_flushed_before_they_are_acknowledged(together: int, want: int, tmp_path: Path) -> None:
    command = [*PROGRAM, str(tmp_path / "store"), str(WRITES), str(together)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # There may be a few more flushes: SQLite flushes the log before it writes it from the beginning again.
    assert want <= int(done.stdout) <= want + 5


def test_each_unbatched_write_calls_fsync(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    command = [installed("strace"), "-f", "-e", "trace=fsync,fdatasync", "-o", str(log), *PROGRAM]
    subprocess.run([*command, str(tmp_path / "store"), str(WRITES), "1"], cwd=ROOT, check=True, timeout=120)
    assert len(re.findall(r"f(?:data)?sync\(\d+\) += 0", log.read_text())) >= WRITES
