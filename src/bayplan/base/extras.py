"""The optional packages, and the extras of Bayplan that install them (docs/dependencies.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bayplan.base.errors import MissingExtra

EXTRAS: Mapping[str, str] = {
    "aiohttp": "server",
    "cryptography": "server",
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
"""The extra that installs a package, by the name under which the package is imported."""


@contextmanager
def named_extras() -> Iterator[None]:
    """Turn the ImportError of a missing optional package into an error with the command that installs it.

    Used at the boundaries of optional parts: the command line, the public names, rarely used output and calls.

    Raises:
        MissingExtra: the package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        extra = EXTRAS.get(package)
        if extra is None:
            raise
        raise MissingExtra(package, extra) from problem
