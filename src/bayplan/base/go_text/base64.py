"""Standard base64, decoded like Go's `encoding/base64`."""

from bayplan.base.go_text.quoting import GoTextError

_BASE64_ALPHABET = {
    character: value
    for value, character in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}


def decode_base64(text: str) -> bytes:
    """Decode standard base64, ignoring line breaks.

    Raises:
        GoTextError: the text is invalid; the message is that of Go's `base64.CorruptInputError`, with the byte offset.
    """
    source = text.encode("utf-8", "replace")
    out = bytearray()
    index = 0
    while index < len(source):
        index, part, ends = _decode_quantum(source, index)
        out += part
        if ends:
            break
    return bytes(out)


def _decode_quantum(source: bytes, index: int) -> tuple[int, bytes, bool]:
    """Decode up to four characters from `index`; return the next index, the bytes, and whether the data ends here."""
    values: list[int] = []
    while len(values) < 4:
        if index == len(source):
            if not values:
                return index, b"", True
            raise _corrupt(index - len(values))
        character = source[index]
        index += 1
        if (value := _BASE64_ALPHABET.get(character)) is not None:
            values.append(value)
        elif character in b"\r\n":
            continue
        elif character != 0x3D or len(values) < 2:
            raise _corrupt(index - 1)
        else:
            return _end_padding(source, index, values)
    number = values[0] << 18 | values[1] << 12 | values[2] << 6 | values[3]
    return index, number.to_bytes(3, "big"), False


def _end_padding(source: bytes, index: int, values: list[int]) -> tuple[int, bytes, bool]:
    """Check what follows the first padding character after two or three characters, and decode those."""
    if len(values) == 2:
        index = _skip_breaks(source, index)
        if index == len(source):
            raise _corrupt(index)
        if source[index] != 0x3D:
            raise _corrupt(index - 1)
        index += 1
    index = _skip_breaks(source, index)
    if index < len(source):
        raise _corrupt(index)
    number = values[0] << 18 | values[1] << 12 | (values[2] << 6 if len(values) == 3 else 0)
    return index, number.to_bytes(3, "big")[: len(values) - 1], True


def _skip_breaks(source: bytes, index: int) -> int:
    while index < len(source) and source[index] in b"\r\n":
        index += 1
    return index


def _corrupt(offset: int) -> GoTextError:
    return GoTextError(f"illegal base64 data at input byte {offset}")
