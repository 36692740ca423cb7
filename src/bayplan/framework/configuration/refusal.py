"""The error for a rejected configuration file: all its problems, each with file, line and column."""

from __future__ import annotations

from collections.abc import Callable, Collection

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.convert import convert_text
from bayplan.framework.configuration.loading import Examination
from bayplan.framework.configuration.problems import list_problems


def refusal(
    text: str, where: str, found: Examination, examine: Callable[[str], Examination], plugins: Collection[str]
) -> ConfigurationError:
    """Return the error for a rejected file; the arguments are those of `list_problems` and the name of the file."""
    problems = list_problems(text, found, examine, plugins)
    hint = "bayplan config convert" if is_older(text, found) else ""
    if len(problems) == 1:
        problem = problems[0]
        what = f"{problem.place.path}: {problem.message}"
        return ConfigurationError(what, where=problem.position(where), hint=hint or problem.quoted_hint)
    lines = "".join(f"\n  {problem.line(where)}" for problem in problems)
    return ConfigurationError(f"has {len(problems)} problems:{lines}", where=where, hint=hint)


def is_older(text: str, found: Examination) -> bool:
    """Return whether a configuration was rejected because it has an older version that can be converted."""
    if not (found.error or "").startswith("no kind "):
        return False
    try:
        convert_text(text)
    except ConfigurationError:
        return False
    return True
