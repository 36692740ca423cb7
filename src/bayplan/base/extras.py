"""The optional packages, and the extras of the package that install them (docs/dependencies.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bayplan.base.errors import MissingExtra

EXTRAS: Mapping[str, str] = {
    "aiohttp": "live",
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
"""The extra that brings a package, by the name under which it is imported."""


@contextmanager
def named_extras() -> Iterator[None]:
    """Turn the import of an optional package that is not installed into an error that names the command to install it.

    For the places through which optional parts are entered: the command line, the public names, what is written or asked only if
    somebody wants it.

    Raises:
        MissingExtra: such a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        extra = EXTRAS.get(package)
        if extra is None:
            raise
        raise MissingExtra(package, extra) from problem
