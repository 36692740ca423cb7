"""What is acknowledged has been flushed to the disk: a kill does not show that, a count of the system's calls does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WRITES = 40
LONE_WRITES = """
import asyncio, sys
from pathlib import Path
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Store

async def main():
    store = Store()
    recorder = DurableRecorder(Path(sys.argv[1]), store, on_failure=print)
    for number in range(int(sys.argv[2])):
        store.put("pods", Item(b"{}", store.revision + 1, "a", f"p{number}", "u", {}, {}))
        await recorder.settled(store.revision)
    recorder.close()

asyncio.run(main())
"""


def test_every_lone_write_is_flushed(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    log = tmp_path / "calls"
    command = [strace, "-f", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    command += [sys.executable, "-c", LONE_WRITES, str(tmp_path / "store"), str(WRITES)]
    subprocess.run(command, check=True, timeout=120)
    assert len(re.findall(r"f(?:data)?sync\(\d+\) += 0", log.read_text())) >= WRITES
