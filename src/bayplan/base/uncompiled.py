"""Replacement for ``import cython`` in compiled modules that run as Python source (docs/compiled.md)."""

from __future__ import annotations

from contextlib import nullcontext

nogil = nullcontext()
"""Compiled, ``with cython.nogil`` releases the GIL."""
