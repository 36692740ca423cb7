"""The source clusters of this cluster, from the status that ``bayplan sync`` writes into this cluster."""

from __future__ import annotations

from bayplan.analysis.cluster_sentences import source_sentence
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.http_api.contract.cluster import SourceCounts, SourceFacts, SourceRow
from bayplan.sync.memory import MEMORY_NAMESPACE
from bayplan.sync.session import STATUS

COUNTS = ("created", "updated", "deleted", "waiting")


def sources_of(backend: Backend) -> list[SourceRow]:
    """Return the source clusters, at most one. Call on the event loop."""
    item = backend.store.get("configmaps", (MEMORY_NAMESPACE, STATUS))
    data = decode_item(item).get("data") if item is not None else None
    if not isinstance(data, dict):
        return []
    texts = {name: str(value) for name, value in data.items()}
    problems = [texts.get(name, "") for name in ("problems", "source_problems")]
    name, kind, state = texts.get("source", ""), texts.get("kind", "sync"), texts.get("state", "")
    lag_seconds = _number(texts.get("lag_seconds", ""))
    return [
        SourceRow(
            name=name,
            kind=kind,
            address=name,
            state=state,
            summary=source_sentence(name=name, kind=kind, state=state, lag_seconds=lag_seconds),
            position=None,
            lag_seconds=lag_seconds,
            policies={},
            counts=SourceCounts(**{name: _number(texts.get(name, "")) for name in COUNTS}),
            message="\n".join(text for text in problems if text),
            left_out=[line for line in texts.get("left_out", "").splitlines() if line],
        )
    ]


def source_facts(source: SourceRow) -> SourceFacts:
    """Return the part of a source's row that the overview and comparisons show."""
    return SourceFacts(
        name=source.name,
        kind=source.kind,
        state=source.state,
        lag_seconds=source.lag_seconds,
        summary=source.summary,
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
