"""What the name ``cython`` stands for in a compiled module that runs as Python source (docs/compiled.md)."""

from __future__ import annotations

from contextlib import nullcontext

nogil = nullcontext()
"""Compiled, ``with cython.nogil`` releases the GIL."""
