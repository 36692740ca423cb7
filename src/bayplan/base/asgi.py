"""The types of ASGI, the interface between servers and applications. Source: https://asgi.readthedocs.io/en/latest/specs/main.html."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
"""One event of a connection; its key ``type`` determines the other keys."""

Scope = MutableMapping[str, Any]
"""The scope of a connection."""

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
