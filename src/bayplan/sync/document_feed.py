"""Documents from files as a feed: each kind is listed once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.base.counted_nouns import format_count
from bayplan.base.plain_data import Document, part, text
from bayplan.sync.feed import Listed, OnChange, RawDocuments
from bayplan.sync.followed_kinds import BY_KIND, FOLLOWED_KINDS

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


class DocumentFeed:
    """Documents as a feed; see `bayplan.sync.feed.Feed`.

    Args:
        documents: documents of any kinds. Documents of kinds that are not synced are counted in `left_out`. Namespaces
            may be missing.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self.kinds = tuple(kind.plural for kind in FOLLOWED_KINDS)
        self.left_out: dict[str, str] = {}
        # Stored as JSON: tens of thousands of decoded documents would take a gigabyte.
        self._by_plural: dict[str, list[bytes]] = {plural: [] for plural in self.kinds}
        others: dict[str, int] = {}
        given: set[str] = set()
        named: dict[str, None] = {}
        for document in documents:
            name = text(document, "kind")
            kind = BY_KIND.get(name)
            if kind is None:
                others[name] = others.get(name, 0) + 1
                continue
            metadata = part(document, "metadata")
            if kind.namespaced and not metadata.get("namespace"):
                document = {**document, "metadata": {**metadata, "namespace": "default"}}
            if kind.plural == "namespaces":
                given.add(text(metadata, "name"))
            elif kind.namespaced:
                named[text(part(document, "metadata"), "namespace")] = None
            self._by_plural[kind.plural].append(_encode(document))
        # A dump of pods often lacks namespaces.
        for name in named:
            if name not in given:
                namespace = {"metadata": {"name": name, "uid": f"namespace-{name}"}}
                self._by_plural["namespaces"].append(_encode(namespace))
        for name, count in others.items():
            self.left_out[name] = (
                f"{format_count(count, 'object')}; scheduling does not read this kind, or its controller would create pods"
            )

    @property
    def problems(self) -> dict[str, str]:
        """No problems; see `Feed`."""
        return {}

    async def open(self) -> None:
        """Do nothing: the kinds are known."""

    async def run(self, on_change: OnChange) -> None:
        """Emit the lists of all kinds, and free them."""
        for plural in self.kinds:
            on_change(Listed(plural, RawDocuments(self._by_plural.pop(plural, []), _decode)))
