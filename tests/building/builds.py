"""The builds in this checkout, for tests that run builds other than their own."""

from __future__ import annotations

import json

from building.extensions import MANIFEST, folder_of
from building.modules import checkout_sources


def compiled_variants() -> set[str]:
    """Return the variants that are compiled for this Python in this checkout; none if nothing here can compile."""
    try:
        facts = json.loads((folder_of(checkout_sources()) / MANIFEST).read_text())
    except OSError:
        return set()
    return {variant for built in facts["modules"].values() for variant in built["variants"]}
