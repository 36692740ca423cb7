"""Errors of expressions."""


class CompileProblem(Exception):
    """The expression can't be used; the text is cel-go's."""


class RunProblem(Exception):
    """The expression failed on a value; the text is cel-go's."""
