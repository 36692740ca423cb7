cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule

# Constants of the .py, as C numbers.
cdef int64_t MAX_NODE_SCORE, _MAX, _MIN

cdef class ScaledScoreRule(ScoreRule):
    @cython.locals(
        count=Py_ssize_t, first=int64_t, distinct=int64_t, scores=int64_t[::1], row=Py_ssize_t, place=Py_ssize_t,
    )
    cpdef void normalize_all(self, tuple scale, int64_t[::1] raw, int64_t[::1] normalized) except *

cdef class StretchedScoreRule(ScaledScoreRule):
    cdef public bint reverse

    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(largest=int64_t, share=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807

@cython.locals(smallest=int64_t, score=int64_t, row=Py_ssize_t)
cpdef int64_t smallest_score(int64_t[::1] raw, uint8_t[::1] chosen, Py_ssize_t count) noexcept
@cython.locals(largest=int64_t, score=int64_t, row=Py_ssize_t)
cpdef int64_t largest_score(int64_t[::1] raw, uint8_t[::1] chosen, Py_ssize_t count) noexcept
@cython.locals(smallest=int64_t, row=Py_ssize_t)
cpdef int64_t lowest(int64_t[::1] raw, Py_ssize_t count) noexcept
@cython.locals(largest=int64_t, row=Py_ssize_t)
cpdef int64_t highest(int64_t[::1] raw, Py_ssize_t count) noexcept
