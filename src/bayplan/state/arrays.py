"""The array types of the columns, named once.

Columns of the state, and arrays that plugins get and return, are annotated with these types.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
"""Exact values for decisions: quantities, counts, scores."""

Floats: TypeAlias = npt.NDArray[np.float64]
"""Intermediate scores, in Go's order of operations."""

Flags: TypeAlias = npt.NDArray[np.uint8]
"""Bools for compiled code: 0 or 1."""

Bools: TypeAlias = npt.NDArray[np.bool_]

Codes: TypeAlias = npt.NDArray[np.uint16]
"""Filter verdicts: 0 passes; the plugin defines the other values, but the two top bits are shared (framework.status)."""

Index: TypeAlias = npt.NDArray[np.intp]
"""Row numbers and codes for gathers: always intp, because an int32 gather is three times slower."""

SMALL = 1 << 46
"""Below this limit, a product with 100 is exact in float64, and plain Python numbers behave like Go's int64."""


def largest_amount(amounts: Ints) -> int:
    """Return the largest of some amounts, or at least `SMALL` if any is negative: such amounts are not small either."""
    if len(amounts) == 0:
        return 0
    low, high = amounts.item(amounts.argmin()), amounts.item(amounts.argmax())
    return high if low >= 0 else max(SMALL, high)
