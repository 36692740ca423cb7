"""Responses of scripted servers (`bayplan.conformance.scripted_server`) for tests."""

from __future__ import annotations

import json

from bayplan.conformance.scripted_server import Response


def says(value: object) -> Response:
    """Return a response whose body is `value`, as JSON unless it is a string already."""
    return {"status": 200, "body": value if isinstance(value, str) else json.dumps(value)}
