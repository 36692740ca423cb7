"""Documents that are there already, from files, as a feed: each kind is listed once, and that is all."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.base.plain_data import Document
from bayplan.sync.document import part, text
from bayplan.sync.feed import Listed, Take
from bayplan.sync.followed_kinds import BY_KIND, BY_PLURAL, FOLLOWED_KINDS


class DocumentFeed:
    """See `bayplan.sync.feed.Feed`.

    Args:
        documents: of any kinds; those that are not followed are counted in `left_out`. Namespaces need not be among them.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self.kinds = tuple(kind.plural for kind in FOLLOWED_KINDS)
        self.left_out: dict[str, str] = {}
        self._by_plural: dict[str, list[Document]] = {plural: [] for plural in self.kinds}
        others: dict[str, int] = {}
        for document in documents:
            name = text(document, "kind")
            kind = BY_KIND.get(name)
            if kind is None:
                others[name] = others.get(name, 0) + 1
                continue
            metadata = part(document, "metadata")
            if kind.namespaced and not metadata.get("namespace"):
                document = {**document, "metadata": {**metadata, "namespace": "default"}}
            self._by_plural[kind.plural].append(document)
        self._add_namespaces()
        for name, count in others.items():
            self.left_out[name] = f"{count} of them; scheduling does not read this kind, or it would make pods"

    def _add_namespaces(self) -> None:
        """Add the namespaces that objects are in and that were not given: a dump of pods often comes without."""
        given = {text(part(each, "metadata"), "name") for each in self._by_plural["namespaces"]}
        for plural, documents in self._by_plural.items():
            if not BY_PLURAL[plural].namespaced:
                continue
            for name in dict.fromkeys(text(part(each, "metadata"), "namespace") for each in documents):
                if name not in given:
                    given.add(name)
                    self._by_plural["namespaces"].append({"metadata": {"name": name, "uid": f"namespace-{name}"}})

    @property
    def problems(self) -> dict[str, str]:
        """See `Feed`."""
        return {}

    async def open(self) -> None:
        """There is nothing to find out."""

    async def run(self, take: Take) -> None:
        """Tell all lists."""
        for plural, documents in self._by_plural.items():
            take(Listed(plural, documents))
