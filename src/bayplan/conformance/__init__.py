"""Recorded answers of a real scheduler compared with Bayplan's: read cases, answer them, compare strictly, count.

How a case is processed: `cases` reads it from a file and detects its kind, `answers` finds the function that answers that kind
and calls it, `comparer` compares the answer with the recorded one part by part, `summary` counts. The functions that
answer (`cycles`, `queue`, `config`, ...) know the engine; nothing else here does.
"""
