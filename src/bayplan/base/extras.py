"""The optional packages, and the extras of the package that install them (docs/dependencies.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bayplan.base.errors import MissingExtra

EXTRAS: Mapping[str, str] = {
    "aiohttp": "server",
    "gymnasium": "gym",
    "httptools": "server",
    "httpx": "server",
    "kubernetes": "live",
    "optuna": "optuna",
    "ortools": "bounds",
    "pandas": "pandas",
    "plotly": "report",
    "prometheus_client": "server",
    "pyarrow": "parquet",
    "ray": "ray",
    "starlette": "server",
    "uvicorn": "server",
    "websockets": "server",
}
"""The extra that provides a package, by the name under which it is imported."""


@contextmanager
def named_extras() -> Iterator[None]:
    """Convert the ImportError of a missing optional package to an error with the command to install it.

    For the entry points of optional parts: the command line, the public names, and output or calls that few users
    need.

    Raises:
        MissingExtra: the package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        extra = EXTRAS.get(package)
        if extra is None:
            raise
        raise MissingExtra(package, extra) from problem
