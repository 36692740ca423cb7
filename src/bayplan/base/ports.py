"""Validation of TCP and UDP ports."""

from bayplan.base.errors import InputError

MAX_PORT = 65535


def check_port(port: int, option: str = "--port") -> None:
    """Reject a port that cannot be listened on.

    Args:
        port: the port; 0 means any free port.
        option: the option that names it, for the error.

    Raises:
        InputError: it is not a port number.
    """
    if not 0 <= port <= MAX_PORT:
        raise InputError(option, got=str(port), wanted=f"a port from 0 to {MAX_PORT}")
