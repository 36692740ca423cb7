cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule
from bayplan.plugins cimport score_range

# Constants of the .py, as C numbers.
cdef int64_t MAX_NODE_SCORE

cdef class StretchedScoreRule(ScoreRule):
    cdef public bint reverse

    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(largest=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(
        largest=int64_t, count=Py_ssize_t, first=int64_t, distinct=int64_t, values=int64_t[::1], place=Py_ssize_t, row=Py_ssize_t,
    )
    cpdef void normalize_all(self, tuple scale, int64_t[::1] raw, int64_t[::1] normalized) except *

@cython.locals(share=int64_t)
cdef inline int64_t stretched(int64_t raw, int64_t largest, bint reverse) except? -9223372036854775807
