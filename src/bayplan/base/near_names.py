"""Finds the likely correct spelling of a misspelt name. All messages take their suggestions from this module."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

MAX_COMPARED = 20_000
"""Maximum number of candidates to compare; they take about 60 ms. Callers that need many names compare with fewer."""

MAX_DIFFERENCE = 4
"""Maximum number of differing letters. A replaced letter counts as two: one is missing, and one is extra."""

MIN_PREFIX_LENGTH = 4
"""Shorter names are not completed, because too many names begin with them."""


def near_name(name: str, candidates: Iterable[str]) -> str:
    """Return the candidate that is most similar to a misspelt name, or `""` if none is similar.

    A candidate is similar if at most a third of the letters differ (but at most `MAX_DIFFERENCE`; names of three or
    more letters may have one replaced), or if it begins with the name. Case is ignored. Of equally similar candidates,
    the first is returned.
    """
    if not name:
        return ""
    wanted = name.lower()
    limit = max(2 if len(wanted) > 2 else 1, min(len(wanted) // 3, MAX_DIFFERENCE))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    nearest, least, completion = "", limit + 1, ""
    for candidate in islice(candidates, MAX_COMPARED):
        found = candidate.lower()
        if not completion and len(wanted) >= MIN_PREFIX_LENGTH and found.startswith(wanted):
            completion = candidate
        total = len(wanted) + len(found)
        if not found or abs(len(wanted) - len(found)) >= least:
            continue
        matcher.set_seq1(found)
        if total * (1 - matcher.quick_ratio()) >= least:
            continue
        difference = total - 2 * sum(block.size for block in matcher.get_matching_blocks())
        if difference < least:
            nearest, least = candidate, difference
    return nearest or completion
