"""Opens recordings of all supported formats."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import msgspec

from bayplan.base.errors import InputError
from bayplan.sync.kss_recording import KssLine, KssRecording
from bayplan.sync.recording import BayplanRecording, HeaderLine, read_lines
from bayplan.sync.simkube_trace import read_simkube
from bayplan.sync.timed_change import Recording

_ENOUGH = 4096


def open_recording(path: Path) -> Recording:
    """Return the recording in a file: one of Bayplan's, kube-scheduler-simulator's JSON lines, or a trace of SimKube.

    Raises:
        InputError: the format is unknown, or the file can't be read.
    """
    first = _first_bytes(path)
    line = next(read_lines(path), b"") if first.lstrip().startswith(b"{") else b""
    if line:
        try:
            return BayplanRecording(path, msgspec.json.decode(line, type=HeaderLine))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
        try:
            return KssRecording(path, msgspec.json.decode(line, type=KssLine))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
    trace = read_simkube(path, first)
    if trace is not None:
        return trace
    wanted = "a recording of bayplan or kube-scheduler-simulator, or a trace of SimKube"
    raise InputError("recording", where=str(path), got="another format", wanted=wanted)


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            first = file.read(_ENOUGH)
            if first[:2] != b"\x1f\x8b":
                return first
            file.seek(0)
            return gzip.open(file).read(_ENOUGH)
    except EOFError:
        return b""
    except (OSError, zlib.error) as problem:
        got = (getattr(problem, "strerror", None) or str(problem)).lower()
        raise InputError("recording", where=str(path), got=got, wanted="a readable file") from None
