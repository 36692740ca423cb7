"""Parse a mix of workloads: ``deployment/web=3,db``."""

from __future__ import annotations

from bayplan.answers.capacity import Share
from bayplan.base.errors import InputError


def parse_mix(text: str) -> list[Share]:
    """Return the workloads of a mix with their proportions.

    Raises:
        InputError: a proportion is no number above 0, or a workload has no name.
    """
    found = []
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        if not name or (equals and (not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= 1000)):
            raise InputError(
                "workloads", got=repr(part), wanted="WORKLOAD or WORKLOAD=N, N from 1 to 1000", hint="web=3,db=1"
            )
        found.append(Share(name, int(number) if equals else 1))
    return found
