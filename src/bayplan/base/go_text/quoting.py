"""Strings as Go quotes them, and the error for texts that Go rejects."""


class GoTextError(ValueError):
    """A text that Go rejects; the message is Go's."""


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def quote(text: str) -> str:
    """Quote a text like Go's %q."""
    parts = []
    for char in text:
        if char in '"\\':
            parts.append("\\" + char)
        elif char.isprintable():
            parts.append(char)
        elif char in _ESCAPES:
            parts.append(_ESCAPES[char])
        else:
            code = ord(char)
            parts.append(f"\\x{code:02x}" if code < 128 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")
    return f'"{"".join(parts)}"'


def quote_bytes(text: str) -> str:
    """Quote a text like the errors of Go's `time` package: control characters and all except ASCII as bytes."""
    parts = []
    for char in text:
        if char < " " or char >= "\x80":
            parts.append("".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "replace")))
        else:
            parts.append("\\" + char if char in '"\\' else char)
    return f'"{"".join(parts)}"'
