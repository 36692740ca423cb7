"""Damage to a store's file: flipped bits and cut ends are detected at the start, and each cause has its own message."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError
from tests.missing import missing

FLIPS = 400


def fail(problem: Exception) -> None:
    raise AssertionError(problem)


def filled(path: Path, count: int = 150) -> DurableRecorder:
    """Return the recorder of a store with objects of many sizes, some longer than a page."""
    store = Store()
    recorder = DurableRecorder(path, store, on_failure=fail)
    draw = random.Random(7)
    for number in range(count):
        raw = b'{"metadata":{"name":"p%d"},"data":"%b"}' % (
            number,
            draw.randbytes(draw.choice((20, 300, 9000))).hex().encode(),
        )
        table = ("pods", "secrets")[number % 2]
        store.put(table, Item(raw, store.revision + 1, "default", f"p{number}", f"u{number}", {"app": "x"}, {}))
        if number % 40 == 0:
            recorder.flush()
    store.remove("pods", Item(b"{}", store.revision + 1, "default", "p0", "u0", {}, {}))
    recorder.flush()
    return recorder


def contents(path: Path) -> tuple[int, list[Item]]:
    store = Store()
    DurableRecorder(path, store, on_failure=fail).close()
    return store.revision, [item for table in ("pods", "secrets") for item in store.between(table)]


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ (1 << bit % 8)]))


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_never_change_the_documents_read(seed: int, tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    filled(original).close()
    want, draw = contents(original), random.Random(seed)
    bits = original.stat().st_size * 8
    detected = 0
    for _ in range(FLIPS // 4):
        shutil.copy(original, copy)
        flip(copy, draw.randrange(bits))
        try:
            assert contents(copy) == want
        except InputError:
            detected += 1
    # The other bits are in pages that hold no data.
    assert detected > FLIPS // 4 * 0.6


def test_a_flipped_bit_in_an_object_is_detected_and_the_error_names_the_object(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    filled(original, 20).close()
    data = original.read_bytes()
    where = data.index(b'"name":"p7"')
    for bit in range(where * 8, where * 8 + 80):
        shutil.copy(original, copy)
        flip(copy, bit)
        with pytest.raises(InputError, match=r"1 checksum mismatch: secrets default/p7\).*try bayplan store check"):
            contents(copy)


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_in_the_write_ahead_log_are_detected_or_harmless(seed: int, tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    recorder = filled(source)
    log = (tmp_path / "source-wal").read_bytes()
    draw = random.Random(seed)
    shutil.copy(source, copy)
    (tmp_path / "copy-wal").write_bytes(log)
    intact = contents(copy)
    detected = passed = 0
    for _ in range(FLIPS // 8):
        shutil.copy(source, copy)
        (tmp_path / "copy-wal").write_bytes(log)
        # The last transaction is excluded: a power failure could have left it incomplete, so damage to it is no error.
        flip(tmp_path / "copy-wal", draw.randrange(len(log) * 6))
        try:
            assert contents(copy) == intact
            passed += 1
        except InputError:
            detected += 1
    recorder.close()
    assert detected > passed


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.99])
def test_a_truncated_file_is_reported_as_truncated(share: float, tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path).close()
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(InputError, match="truncated"):
        contents(path)


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()


@pytest.mark.parametrize(
    ("damage", "want"),
    [
        pytest.param(_newer, r"format 99 \(written by a newer Bayplan", id="newer"),
        pytest.param(_foreign, "another program's database", id="another program's"),
        pytest.param(lambda path: path.write_text("hello, this is text\n" * 10), "begins with b'hello", id="text"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), "something other than a regular file", id="a folder"),
        pytest.param(
            lambda path: (path.unlink(), path.symlink_to("gone")), "a symbolic link to 'gone'", id="a link to nothing"
        ),
        pytest.param(
            lambda path: path.with_name("store-wal").symlink_to("x"), "got a symbolic link", id="a planted log"
        ),
        pytest.param(lambda path: path.parent.chmod(0o777), "every user can write to", id="a world-writable folder"),
    ],
)
def test_invalid_store_files_are_refused_and_unchanged(
    damage: Callable[[Path], object], want: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(0o700)
    path = folder / "store"
    filled(path, 3).close()
    damage(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(InputError, match=want):
        contents(path)
    assert before == (path.read_bytes() if path.is_file() else b"")


def test_the_error_for_a_missing_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder '.*nowhere'; try mkdir -p"):
        contents(tmp_path / "nowhere" / "store")


def test_a_store_in_use_is_reported_as_locked(tmp_path: Path) -> None:
    recorder = filled(tmp_path / "store", 3)
    with pytest.raises(InputError, match="another process has locked"):
        contents(tmp_path / "store")
    recorder.close()


@contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """Run as an unprivileged user, and yield a folder of this user: root ignores file permissions."""
    folder = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_read_only_files_and_folders_are_reported_as_such() -> None:
    with unprivileged_folder() as folder:
        path = folder / "store"
        filled(path, 3).close()
        path.chmod(0o400)
        with pytest.raises(InputError, match="a read-only file"):
            contents(path)
        path.chmod(0o600)
        folder.chmod(0o500)
        with pytest.raises(InputError, match="which can't be written to"):
            contents(path)
        path.chmod(0)
        folder.chmod(0o700)
        with pytest.raises(InputError, match="can't be read"):
            contents(path)


def test_new_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    recorder = filled(tmp_path / "store", 3)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)}
    assert modes == {"store": 0o600, "store-wal": 0o600}
    recorder.close()


def test_permissions_of_a_store_readable_by_others_are_restricted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store"
    filled(path, 3).close()
    path.chmod(0o644)
    contents(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "other users could read" in caplog.text


def test_deleted_documents_are_erased_from_the_file(tmp_path: Path) -> None:
    path, store = tmp_path / "store", Store()
    recorder = DurableRecorder(path, store, on_failure=fail)
    store.put("secrets", Item(b"swordfish" * 2000, 1, "default", "s", "u", {}, {}))
    recorder.flush()
    store.remove("secrets", Item(b"{}", 2, "default", "s", "u", {}, {}))
    recorder.close()
    assert b"swordfish" not in path.read_bytes()


OLD_SCHEMA = """
CREATE TABLE documents (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, uid TEXT NOT NULL,
    facts BLOB NOT NULL, raw BLOB NOT NULL, PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL);
INSERT INTO counter VALUES (0, 9);
INSERT INTO documents VALUES ('pods', 'default', 'a', 3, 'u', x'9280', x'7b7d');
PRAGMA application_id = 1113684336;
"""


def test_a_store_of_an_earlier_release_is_migrated_to_checksums(tmp_path: Path) -> None:
    import msgspec

    path = tmp_path / "store"
    with sqlite3.connect(path) as connection:
        connection.executescript(OLD_SCHEMA)
        facts = msgspec.msgpack.encode(({"app": "x"}, {}))
        connection.execute("UPDATE documents SET facts = ?", (facts,))
    connection.close()
    want = 9, [Item(b"{}", 3, "default", "a", "u", {"app": "x"}, {})]
    assert contents(path) == want
    assert contents(path) == want
    with path.open("r+b") as file:
        at = path.read_bytes().index(b"{}")
        file.seek(at)
        file.write(b"[]")
    with pytest.raises(InputError, match="pods default/a"):
        contents(path)


FULL = """
import asyncio, resource, signal, sys
from pathlib import Path
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Store

if sys.argv[2] == "limit":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

async def main():
    store, failed = Store(), []
    recorder = DurableRecorder(Path(sys.argv[1]), store, on_failure=failed.append)
    acknowledged = 0
    try:
        while True:
            store.put("pods", Item(b"x" * 20_000, store.revision + 1, "a", f"p{acknowledged}", "u", {}, {}))
            await recorder.until_durable(store.revision)
            acknowledged += 1
    except Exception as problem:
        print(acknowledged, type(problem).__name__, problem)
    recorder.close()

asyncio.run(main())
"""


def _fill(path: Path, how: str) -> tuple[int, str]:
    """Write until it fails; return how many writes were acknowledged, and the message."""
    command = [sys.executable, "-c", FULL, str(path), how]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    count, _, message = printed.partition(" ")
    return int(count), message


def test_a_file_size_limit_loses_no_acknowledged_write_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "store"
    acknowledged, message = _fill(path, "limit")
    assert "InputError" in message
    assert "a read or write error" in message or "no space left on the disk" in message
    assert len(contents(path)[1]) >= acknowledged > 0


def test_a_full_disk_loses_no_acknowledged_write_and_is_reported(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir(0o700)
    # On hosted runners the user becomes root without a password. -n never asks for one.
    as_root = ["sudo", "-n"] if os.geteuid() and os.environ.get("CI") else []
    options = f"size=512k,mode=700,uid={os.geteuid()}"
    mount = [*as_root, "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode:
        missing(
            f"a small disk can't be mounted ({mounted.stderr.strip()}); run the test as root, in a container with "
            "--cap-add SYS_ADMIN"
        )
    try:
        acknowledged, message = _fill(disk / "store", "disk")
        assert "no space left on the disk" in message
        shutil.copytree(disk, tmp_path / "copy")
        assert len(contents(tmp_path / "copy" / "store")[1]) >= acknowledged > 0
        # The disk has not even enough room for a new store.
        with pytest.raises(InputError, match="no space left on the disk"):
            contents(disk / "another")
    finally:
        subprocess.run([*as_root, "umount", str(disk)], check=True)
