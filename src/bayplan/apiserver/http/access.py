"""Who may ask: whoever shows the token; without one whoever asks this machine from it, but no web page of another host."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from bayplan.apiserver.rest.errors import ApiError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Access:
    """The check of every request.

    Args:
        token: what clients must show; empty lets everybody on this machine in.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def check(self, headers: Mapping[str, str], *, shown: str = "") -> None:
        """Refuse a request that may not be made.

        Args:
            headers: of the request, names in lower case.
            shown: a token that was shown in another way than in the header ``Authorization``.

        Raises:
            ApiError: the token is missing or wrong; or there is none, and the request is for another host's name, or comes
                from a page of another host.
        """
        if not self._token:
            _check_is_local(headers)
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else shown
        if not hmac.compare_digest(token.encode(), self._token):
            raise ApiError(401, "Unauthorized")


def _check_is_local(headers: Mapping[str, str]) -> None:
    """Refuse what a web page could send through its reader's browser: nobody needs a token on this machine."""
    host, origin = headers.get("host"), headers.get("origin")
    if (host and not _is_local(f"//{host}")) or (origin is not None and not _is_local(origin)):
        raise ApiError(403, "without a token, requests must be made to this machine, from it", reason="Forbidden")


@lru_cache(maxsize=256)
def _is_local(address: str) -> bool:
    try:
        return urlsplit(address).hostname in LOOPBACK
    except ValueError:
        return False
