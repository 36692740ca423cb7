"""The files of the page, as they are served: read once, with types, digests and packed copies.

They lie in the package beside this module (``static/``). Nothing is built or fetched: what is in the folder is what
browsers get, but for one word: `DIGEST` in the shell is replaced by a digest over all files. It stands in the address
of every file, so browsers may keep them for ever, and never mix two versions.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The kinds of files there may be; another one is an error when the page is loaded, not a wrong type later."""

SHELL = "index.html"
DIGEST = b"{digest}"
_LEAST_PACKED = 512


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that is ready to be sent.

    Attributes:
        content_type: with the character set. body: its bytes. packed: the same in gzip, or b"" where that is no gain.
        etag: strong, in quotes; of the bytes that were not packed.
    """

    content_type: str
    body: bytes
    packed: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """All files of the page.

    Attributes:
        digest: over names and contents of all of them. files: by name, with forward slashes, without the shell.
        shell: the HTML that every address of the page answers with.
    """

    digest: str
    files: dict[str, StaticFile]
    shell: StaticFile


def load_static_files() -> StaticFiles:
    """Read the files of the page from the package.

    Raises:
        ValueError: a file is of a kind that `TYPES` doesn't know.
    """
    contents = dict(_contents(files("bayplan.ui").joinpath("static"), ""))
    whole = hashlib.sha256()
    for name, body in sorted(contents.items()):
        whole.update(b"%s\0%d\0%s" % (name.encode(), len(body), body))
    digest = whole.hexdigest()[:12]
    shell = contents.pop(SHELL).replace(DIGEST, digest.encode())
    return StaticFiles(digest, {name: _file(name, body) for name, body in contents.items()}, _file(SHELL, shell))


def _contents(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _contents(entry, f"{name}/")
        else:
            found.append((name, entry.read_bytes()))
    return found


def _file(name: str, body: bytes) -> StaticFile:
    suffix = name[name.rfind(".") :]
    if suffix not in TYPES:
        raise ValueError(f"static/{name}: no content type is known for {suffix}")
    packed = gzip.compress(body, 6, mtime=0) if len(body) >= _LEAST_PACKED else b""
    return StaticFile(
        TYPES[suffix],
        body,
        packed if len(packed) < len(body) else b"",
        f'"{hashlib.sha256(body).hexdigest()[:16]}"',
    )
