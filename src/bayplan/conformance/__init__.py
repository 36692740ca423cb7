"""Recorded answers of a real scheduler compared with Bayplan's: read cases, answer them, compare strictly, count.

`cases` reads a case from a file and detects its kind. `answers` finds the function that answers this kind and calls it.
`comparer` compares the answer with the recorded one part by part, and `summary` counts. Only the functions that answer
(`cycles`, `queue`, `config`, ...) use the engine.
"""
