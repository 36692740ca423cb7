"""Bayplan without google-re2, for example on a Python version for which it has no wheels."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_RE2 = "import sys; sys.modules['re2'] = None; "
COMPILE = "from bayplan.base.go_regexp import compile_regexp; compile_regexp('needs an engine')"
PARSE = """\
from bayplan.formats.json_text import parse
parse(b'{"kind": "List", "apiVersion": "v1", "items": [{"a": 1e999}]}')
"""


@pytest.mark.parametrize(
    ("program", "want"),
    [
        pytest.param(
            COMPILE, "RegexpError: regular expressions need google-re2: try pip install google-re2", id="patterns"
        ),
        pytest.param(PARSE, "JsonError: ", id="large numbers in JSON"),
    ],
)
def test_input_is_refused_with_the_right_error(program: str, want: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RE2 + program], capture_output=True, text=True, check=False, timeout=60
    )
    assert want in done.stderr.splitlines()[-1]
