"""Errors of CEL expressions."""


class CompileProblem(Exception):
    """An expression is invalid; the text is cel-go's message."""


class RunProblem(Exception):
    """The evaluation of an expression failed; the text is cel-go's message."""
