"""Recorded answers of a real scheduler against ours: read cases, answer them, compare strictly, count.

The way of a case: `cases` reads it from a file and tells its kind, `answers` finds the function that answers that kind
and calls it, `comparer` holds the answer against the recorded one part by part, `summary` counts. The functions that
answer (`cycles`, `queue`, `config`, ...) know the engine; nothing else here does.
"""
