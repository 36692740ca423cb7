"""Reading any damaged file of a trace succeeds or raises InputError, never another exception."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.formats.inputs import load_inputs
from tests.formats.traces.reading import HEAD, SAMPLES

FILES = sorted(path.relative_to(SAMPLES) for path in SAMPLES.glob("*/*") if path.suffix in (".csv", ".json", ""))
JUNK = [
    b"", b",", b'"', b"\n", b"-1", b"1e999", b"nan", b"0.5", b"1_0", b"9" * 30, b"\xff", b"\x00", "\u0663".encode(), b"[", b"]",
    b"{", b"}", b":", b"null", b'"\\ud800"', b'"None"', b"[[[[", b'"2017-10-07T01:00:00+01:00"', b'"0001-01-01 00:00:00"', b"true",
]  # fmt: skip
"""Bytes that are inserted into a file."""


@pytest.mark.parametrize("name", [pytest.param(path, id=str(path)) for path in FILES])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_loaded_or_raises_input_error(name: Path, data: st.DataObject, tmp_path: Path) -> None:
    text = (SAMPLES / name).read_bytes()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(start + data.draw(st.integers(0, 12)), len(text))
        text = text[:start] + data.draw(st.sampled_from(JUNK)) + text[end:]
    path = tmp_path / name.name
    path.write_bytes(text)
    fields = data.draw(st.sampled_from(["", "limit: 2", "sample: 0.5", "from: 11m", "skipInvalid: true", "nodes: 1"]))
    (tmp_path / "trace.yaml").write_text(
        f"{HEAD}format: {name.parent.name}\ntables: {{{_table(name)}: [{path.name}]}}\n{fields}\n"
    )
    with suppress(InputError):
        inputs = load_inputs([str(tmp_path / "trace.yaml")])
        assert inputs.trace is not None
        assert all(each.arrival_ns >= 0 for each in inputs.trace.pods)
        assert all((each.run_time_ns or 0) >= 0 for each in inputs.trace.pods)


def _table(name: Path) -> str:
    return name.stem.partition("-")[0]
