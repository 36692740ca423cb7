cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule

cdef int64_t _MOST

cdef class ReducedScoreRule(ScoreRule):
    cdef public bint reverse

    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(largest=int64_t, share=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
