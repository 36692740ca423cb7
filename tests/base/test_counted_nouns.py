"""Nouns after numbers."""

from __future__ import annotations

import pytest

from bayplan.base.counted_nouns import format_count


@pytest.mark.parametrize(
    ("count", "noun", "want"),
    [
        (0, "node", "0 nodes"),
        (1, "node", "1 node"),
        (1200, "node", "1,200 nodes"),
        (2, "mix", "2 mixes"),
        (1, "StorageClass", "1 StorageClass"),
        (3, "StorageClass", "3 StorageClasses"),
        (2, "copy", "2 copies"),
        (2, "gateway", "2 gateways"),
        (2, "checksum mismatch", "2 checksum mismatches"),
    ],
)
def test_counts_agree_with_their_noun(count: int, noun: str, want: str) -> None:
    assert format_count(count, noun) == want
