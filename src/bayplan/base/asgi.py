"""The types of ASGI, the interface between servers and applications.

Source: https://asgi.readthedocs.io/en/latest/specs/main.html.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
"""One event of a connection; its key `type` determines which other keys it has."""

Scope = MutableMapping[str, Any]
"""The properties of a connection when it begins, such as the path and the headers of a request."""

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
