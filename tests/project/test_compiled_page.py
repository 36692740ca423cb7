"""The module of docs/compiled.md compiles with Cython, and runs uncompiled."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from bayplan.state.pod_info import POD_COUNT
from bayplan.testing.builders import make_node
from tests.project.tree import ROOT

PAGE = (ROOT / "docs" / "compiled.md").read_text(encoding="utf-8")
DECLARATIONS = re.search(r"^`rule.pxd`:\n\n```cython\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SOURCE = re.search(r"^`rule.py`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_cython_compiles_the_module_of_the_page(tmp_path: Path) -> None:
    assert DECLARATIONS is not None
    assert SOURCE is not None
    (tmp_path / "rule.pxd").write_text(DECLARATIONS[1], encoding="utf-8")
    (tmp_path / "rule.py").write_text(SOURCE[1], encoding="utf-8")
    command = [sys.executable, "-m", "cython", "-3", "--include-dir", str(ROOT / "src"), "rule.py"]
    done = subprocess.run(
        [*command, "-X", "annotation_typing=False"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Calls must be direct. A function that is not declared would be looked up as a Python attribute.
    assert "__pyx_f_4rule_8FreePods_filter" in (tmp_path / "rule.c").read_text(encoding="utf-8")


def test_the_module_of_the_page_runs_uncompiled() -> None:
    assert SOURCE is not None
    names: dict[str, object] = {}
    exec(SOURCE[1], names)  # This is the page's code.
    from bayplan import Cluster

    columns = Cluster(
        [make_node(name).capacity(cpu="1", pods=pods).obj() for name, pods in (("a", "1"), ("b", "3"))]
    ).state.columns
    assert columns.usage[POD_COUNT, 0] == 0
    rule = names["FreePods"](columns, 2)  # type: ignore[operator]
    assert names["failing"]([rule], 2) == 1  # type: ignore[operator]
    assert names["largest"](np.array([1, 5, 3])) == 5  # type: ignore[operator]
