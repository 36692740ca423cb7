"""Connections to the extenders of a configuration, for simulations and other hosts of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bayplan.base.extras import named_extras
from bayplan.framework.configuration.document import Extender as ExtenderConfiguration
from bayplan.framework.extender import Extender

if TYPE_CHECKING:
    from bayplan.extender.client import ExtenderClient


class ExtenderConnections:
    """The extenders of a configuration and their connections; close it after the last cycle.

    Args:
        configurations: the configurations of the extenders, in the order of the calls.
        kind: the class of the extenders that the engine receives.

    Attributes:
        extenders: the extenders, for the engine.
    """

    def __init__(self, configurations: Sequence[ExtenderConfiguration], *, kind: type[Extender] = Extender) -> None:
        self._clients = [_client(configuration) for configuration in configurations]
        self.extenders = tuple(
            kind(configuration, client.send)
            for configuration, client in zip(configurations, self._clients, strict=True)
        )

    def close(self) -> None:
        """Close all connections; calling an extender opens a new one."""
        for client in self._clients:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _client(configuration: ExtenderConfiguration) -> ExtenderClient:
    # HTTP takes long to import, and few configurations have extenders.
    with named_extras():
        from bayplan.extender.client import ExtenderClient

    return ExtenderClient(configuration)
