"""The memory layouts that compiled modules assume are those of the structs."""

from __future__ import annotations

import ctypes
import re
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

import bayplan

PACKAGE = Path(bayplan.__file__).parent
CLASS = re.compile(r"ctypedef class ([\w.]+)\.(\w+) \[object (\w+), check_size error\]:\n((?: {8}cdef .*\n)+)")
HEAD = object.__basicsize__
WORD = ctypes.sizeof(ctypes.c_void_p)


def layouts() -> list[tuple[str, str, list[str], list[str]]]:
    """Return module and name of each struct, the fields of its C type, and the fields that Cython reads, in order."""
    found = []
    for path in sorted(PACKAGE.rglob("struct_layouts.pxd")):
        text = path.read_text()
        for module, name, c_type, declared in CLASS.findall(text):
            body = re.search(rf"PyObject_HEAD\n([^}}]*)\}} {c_type};", text)
            assert body is not None, name
            found.append((module, name, re.findall(r"\*(\w+)", body[1]), re.findall(r"(\w+)(?=[,\n])", declared)))
    return found


@pytest.mark.parametrize(("module", "name", "c_fields", "declared"), layouts(), ids=lambda value: str(value)[-40:])
def test_a_field_is_where_compiled_modules_read_it(
    module: str, name: str, c_fields: list[str], declared: list[str]
) -> None:
    struct = getattr(import_module(module), name)
    assert issubclass(struct, msgspec.Struct)
    assert sorted(struct.__struct_fields__) == c_fields == declared
    values = {field: object() for field in c_fields}
    made = struct(**values)
    stored = [ctypes.c_void_p.from_address(id(made) + HEAD + WORD * place).value for place in range(len(c_fields))]
    assert stored == [id(values[field]) for field in c_fields]
    assert struct.__basicsize__ == HEAD + WORD * len(c_fields)


def test_all_layouts_are_compared() -> None:
    declared = sum(path.read_text().count("ctypedef class") for path in PACKAGE.rglob("struct_layouts.pxd"))
    assert len(layouts()) == declared > 0
