"""Output on a thread: nothing blocks, too much is dropped and counted, and what can be written is written at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayplan.base.background_output import BackgroundOutput


def read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, encoding="utf-8") as file:
        return file.read()


def test_lines_arrive_whole_and_in_order() -> None:
    reading, writing = os.pipe()
    output = BackgroundOutput(writing)
    print("first", flush=True, file=output)
    output.write("sec")
    output.write("ond \u00fc\nunfinished")
    output.finish()
    os.close(writing)
    assert read_all(reading) == "first\nsecond \u00fc\nunfinished"


def test_text_is_written_in_the_encoding_of_the_stream() -> None:
    reading, writing = os.pipe()
    output = BackgroundOutput(writing, encoding="ascii")
    print("5 \u00b5s", file=output)
    output.finish()
    os.close(writing)
    assert (output.encoding, read_all(reading)) == ("ascii", "5 \\xb5s\n")


def test_lines_that_nobody_reads_are_dropped_and_counted() -> None:
    reading, writing = os.pipe()
    output = BackgroundOutput(writing, max_pending_bytes=1 << 18)
    began = time.monotonic()
    for number in range(10_000):
        output.write(f"{number:099}\n")
    output.finish(0.1)
    assert time.monotonic() - began < 5
    assert output.dropped_lines == 0  # `finish` queued the report.
    found = b""
    with os.fdopen(reading, "rb") as file:
        while b"could not" not in found:
            found += os.read(file.fileno(), 1 << 16)
    os.close(writing)
    *lines, report = found.decode().splitlines()
    assert [int(line) for line in lines] == list(range(len(lines)))
    assert report == f"{10_000 - len(lines):,} lines could not be written"


@pytest.mark.parametrize(("lost", "want"), [(1, "1 line"), (3, "3 lines")])
def test_lines_are_written_again_when_a_full_disk_has_room(lost: int, want: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which only Linux has")
    reading, writing = os.pipe()
    full = os.open("/dev/full", os.O_WRONLY)
    output = BackgroundOutput(full)
    for number in range(lost):
        output.write(f"lost {number}\n")
        # The report of the lines before is lost with this line.
        while output.dropped_lines <= number:
            time.sleep(0.01)
    os.dup2(writing, full)
    output.write("later\n")
    output.finish()
    os.close(full)
    os.close(writing)
    assert read_all(reading) == f"{want} could not be written\nlater\n"


def test_text_is_written_after_the_end() -> None:
    reading, writing = os.pipe()
    output = BackgroundOutput(writing)
    output.write("first\nunfinished")
    output.finish()
    output.write(" second\n")
    os.close(writing)
    output.write("to a closed descriptor\n")
    assert read_all(reading) == "first\nunfinished second\n"


def test_a_terminal_gets_a_flushed_status_line() -> None:
    if not hasattr(os, "openpty"):
        pytest.skip("needs os.openpty, which Windows lacks")
    reading, writing = os.openpty()
    output = BackgroundOutput(writing)
    print("\rone", end="", flush=True, file=output)
    assert os.read(reading, 100) == b"\rone"
    output.finish()
    os.close(writing)
    os.close(reading)


def test_flushed_text_is_dropped_if_too_much_is_pending() -> None:
    if not hasattr(os, "openpty"):
        pytest.skip("needs os.openpty, which Windows lacks")
    reading, writing = os.openpty()
    output = BackgroundOutput(writing, max_pending_bytes=1000)
    for number in range(10_000):
        print(f"\rstatus {number:99}", end="", flush=True, file=output)
    assert output._pending_bytes <= 1000
    output.finish(0.1)
    os.close(reading)
    os.close(writing)


def test_a_closed_pipe_raises_broken_pipe_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = BackgroundOutput(writing)
    print("first", file=output)
    output.finish()
    with pytest.raises(BrokenPipeError):
        print("second", file=output)
    os.close(writing)


def test_a_program_ends_although_nobody_reads_its_output(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from bayplan.base.background_output import background_output\n"
        "with background_output():\n"
        "    for number in range(5000): print('x' * 100); print('y' * 100, file=sys.stderr)\n"
        f"    open({str(tmp_path / 'done')!r}, 'w').close()\n"
    )
    reading, writing = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", program], stdout=writing, stderr=writing)
    assert process.wait(30) == 0
    assert (tmp_path / "done").exists()
    os.close(reading)
    os.close(writing)
