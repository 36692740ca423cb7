"""The compiled modules of this checkout, for tests of builds other than their own."""

from __future__ import annotations

import json

from building.extensions import MANIFEST, folder_of
from building.modules import checkout_sources


def compiled_variants() -> set[str]:
    """Return the variants that this checkout has compiled for this Python; none if there is no build."""
    try:
        facts = json.loads((folder_of(checkout_sources()) / MANIFEST).read_text())
    except OSError:
        return set()
    return {variant for built in facts["modules"].values() for variant in built["variants"]}
