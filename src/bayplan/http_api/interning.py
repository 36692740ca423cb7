"""Texts as small integers, so that columns of them are arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.state.arrays import Ints


class TextCodes:
    """A two-way table of texts and their codes; 0 is the empty text."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str) -> int:
        """Return the code of a text, assigning a new one if needed."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return found

    def find(self, text: str) -> int | None:
        """Return the code of a text, or None."""
        return self._codes.get(text)

    def keep_only(self, codes: Iterable[int]) -> Ints:
        """Forget all texts except those with the given codes; return the new code of each old one (0 for forgotten ones).

        Used for texts that rarely repeat, such as messages with numbers in them.
        """
        texts = self.texts
        self.texts, self._codes = [""], {"": 0}
        moved = np.zeros(len(texts), dtype=np.int64)
        for old in codes:
            moved[old] = self.code(texts[old])
        return moved
