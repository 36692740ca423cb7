"""The static files of the page: read once, with types, digests and compressed copies.

They are in the package next to this module (``static/``). There is no build step: browsers get the files unchanged,
except two placeholders in the shell. `DIGEST` is replaced by a digest of all files; it is part of the address
of every file, so browsers may cache them forever and never mix two versions. `MODULES` is replaced by links to a page's modules.
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The allowed types of files; any other is an error at start, not a wrong content type later."""

SHELL = "index.html"
DIGEST = "{digest}"
MODULES = "{modules}"
"""The placeholder in the shell for the modules that a page needs, so that browsers request them in parallel."""

_FIRST_MODULE = "main.js"
_ADDRESSES = "pages.js"
_ROUTE = re.compile(r'\["(/[^"]*)", "(\w+)", \{')
_IMPORT = re.compile(r'^(?:import .*|\} )from "([^"]+)";$', re.MULTILINE)
_MIN_COMPRESSED_BYTES = 512


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file, ready to be served.

    Attributes:
        content_type: the media type with the character set.
        body: the content of the file.
        packed: the content compressed with gzip, or b"" if that is not smaller.
        etag: the strong ETag, in quotes, of the uncompressed content.
    """

    content_type: str
    body: bytes
    packed: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """All files of the page.

    Attributes:
        digest: the digest of names and contents of all files.
        files: the files by name, with forward slashes, without the shells.
        routes: patterns of paths below the page's root, each with the module that shows these paths; the first match counts.
        shells: the HTML by that module, and by "" for all other addresses.
    """

    digest: str
    files: dict[str, StaticFile]
    routes: tuple[tuple[str, str], ...]
    shells: dict[str, StaticFile]

    def shell(self, address: str) -> StaticFile:
        """Return the HTML for a path of the page. Paths differ only in the modules that their HTML preloads."""
        parts = address.strip("/").split("/")
        for pattern, page in self.routes:
            wanted = pattern.strip("/").split("/")
            if len(wanted) == len(parts) and all(
                want.startswith(":") or want == part for want, part in zip(wanted, parts, strict=True)
            ):
                return self.shells[page]
        return self.shells[""]


def load_static_files() -> StaticFiles:
    """Read the files of the page from the package.

    Raises:
        ValueError: the type of a file is not in `TYPES`.
    """
    contents = dict(_contents(files("bayplan.ui").joinpath("static"), ""))
    whole = hashlib.sha256()
    for name, body in sorted(contents.items()):
        whole.update(b"%s\0%d\0%s" % (name.encode(), len(body), body))
    digest = whole.hexdigest()[:12]
    shell = contents.pop(SHELL).decode()
    texts = {name: body.decode() for name, body in contents.items() if name.endswith(".js")}
    routes = tuple(_ROUTE.findall(texts[_ADDRESSES]))
    shells = {
        page: _shell(shell, digest, modules_of(page, texts)) for page in sorted({"", *(each[1] for each in routes)})
    }
    return StaticFiles(digest, {name: _file(name, body) for name, body in contents.items()}, routes, shells)


def modules_of(page: str, texts: Mapping[str, str]) -> list[str]:
    """Return the names of the modules that a page imports, directly or indirectly, in the order in which a browser finds them.

    `main.js` is not among them: the shell loads it itself.

    Args:
        page: the name of the page's module; "" for the modules that all pages need.
        texts: the source texts of all modules, by name.
    """
    found = dict.fromkeys([_FIRST_MODULE, f"pages/{page}.js"] if page else [_FIRST_MODULE])
    waiting = [*found]
    while waiting:
        name = waiting.pop(0)
        for target in _IMPORT.findall(texts[name]):
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if imported not in found:
                found[imported] = None
                waiting.append(imported)
    return [name for name in found if name != _FIRST_MODULE]


def _shell(shell: str, digest: str, modules: Sequence[str]) -> StaticFile:
    links = "\n".join(f'<link rel="modulepreload" href="/ui/static/{digest}/{name}">' for name in modules)
    return _file(SHELL, shell.replace(DIGEST, digest).replace(MODULES, links).encode())


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
    packed = gzip.compress(body, 6, mtime=0) if len(body) >= _MIN_COMPRESSED_BYTES else b""
    return StaticFile(
        TYPES[suffix],
        body,
        packed if len(packed) < len(body) else b"",
        f'"{hashlib.sha256(body).hexdigest()[:16]}"',
    )
