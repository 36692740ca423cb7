"""Replaces `import cython` in compiled modules when they run as Python source (docs/compiled.md)."""

from __future__ import annotations

from contextlib import nullcontext

nogil = nullcontext()
"""In compiled modules, `with cython.nogil` releases the GIL."""
