"""Continue tokens of lists: the revision of the pages, and the key to continue from."""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
from typing import NamedTuple

from bayplan.apiserver.model.errors import ApiError, bad_request
from bayplan.base.go_text.json import json_problem

_VERSION = "meta.k8s.io/v1"
CONSISTENT_NO_MORE = -1
"""Instead of a revision: continue with the current objects."""


class Continue(NamedTuple):
    """Position in a list: revision, and the first key, relative to the list."""

    revision: int
    start: str


def encode_continue(revision: int, last_key: str) -> str:
    """Return the token that continues after a key."""
    start = last_key if revision == CONSISTENT_NO_MORE else f"/{last_key}"
    body = json.dumps({"v": _VERSION, "rv": revision, "start": f"{start}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def decode_continue(token: str) -> Continue:
    """Return what a token says.

    Raises:
        ApiError: it can't be read.
    """
    try:
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _unusable("continue key is not valid: illegal base64 data at input byte 0") from None
    text = data.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        raise _unusable(f"continue key is not valid: {json_problem(text)}") from None
    if not isinstance(found, dict) or found.get("v") != _VERSION:
        version = found.get("v", "") if isinstance(found, dict) else ""
        raise _unusable(f"continue key is not valid: server does not recognize this encoded version {version}")
    revision, start = found.get("rv"), found.get("start")
    if not isinstance(revision, int) or revision == 0:
        raise _unusable("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _unusable("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(key.rstrip("\0")) != key.rstrip("\0"):
        raise _unusable(f"continue key is not valid: {start}")
    return Continue(revision, key[1:])


def _unusable(why: str) -> ApiError:
    return bad_request(f"invalid continue token: {why}")
