"""Errors of expressions."""


class CompileProblem(Exception):
    """The expression is invalid; the text is cel-go's."""


class RunProblem(Exception):
    """The expression failed on a value; the text is cel-go's."""
