"""Run the part of curl that tutorials use: ``curl [-s] [-X METHOD] [-H HEADER] [-d DATA] [--data-binary DATA] URL``.

For machines without curl. Any other option is an error, so that no page can use an option that the tests do not cover.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

_WITHOUT_SCHEME = "http://"
_NOT_REACHED = 7


def main(arguments: list[str]) -> int:
    """Send the request, and write the body of the answer, whatever its code, to standard output."""
    method, data, address = "", b"", ""
    headers: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word in ("-d", "--data-binary"):
            data = _data(next(words), binary=word != "-d")
            method = method or "POST"
        elif word.startswith("-"):
            assert word == "-s", f"an option that is not known here: {word}"
        else:
            address = word if "://" in word else _WITHOUT_SCHEME + word
    request = urllib.request.Request(address, data or None, headers, method=method or "GET")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
    except urllib.error.HTTPError as problem:
        body = problem.read()
    except OSError:
        return _NOT_REACHED
    sys.stdout.buffer.write(body)
    return 0


def _data(text: str, *, binary: bool) -> bytes:
    """Return the body: the text, or the file after an @, without its line breaks unless `binary`."""
    if not text.startswith("@"):
        return text.encode()
    found = Path(text[1:]).read_bytes()
    return found if binary else found.replace(b"\r", b"").replace(b"\n", b"")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
