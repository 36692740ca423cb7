"""Bundled examples: manifests that are installed with the package. Data only; nothing in the engine reads them."""

from pathlib import Path

from bayplan.base.errors import InputError


def example_names() -> list[str]:
    """Return the names of the bundled examples, sorted."""
    return sorted(path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name[0] not in "_.")


def example_path(name: str = "three-zones") -> Path:
    """Return the folder of a bundled example, ready to be given to `bayplan simulate`.

    Raises:
        InputError: no example has that name.
    """
    if name not in example_names():
        raise InputError("example", got=f"'{name}'", wanted=f"one of {', '.join(example_names())}")
    return Path(__file__).parent / name
