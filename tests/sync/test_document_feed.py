"""Files as the source of a sync: the kinds that are left out."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document
from bayplan.sync.document_feed import DocumentFeed


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param(("web",), "1 object; scheduling does not read this kind", id="one object"),
        pytest.param(("web", "db"), "2 objects; scheduling does not read this kind", id="several objects"),
    ],
)
def test_objects_of_other_kinds_are_counted(names: tuple[str, ...], want: str) -> None:
    documents: list[Document] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}} for name in names
    ]
    (why,) = DocumentFeed(documents).left_out.values()
    assert why.startswith(want)
