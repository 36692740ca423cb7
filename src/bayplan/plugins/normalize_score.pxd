cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule

cdef int64_t MAX_NODE_SCORE, MAX_INT64, MIN_INT64, _PLACES
cdef Py_ssize_t RAW_SCORES

cdef class ScaledScoreRule(ScoreRule):
    cdef int64_t[::1] _raw_scores, _normalized

    cpdef void normalize_all(self, tuple scale, int64_t[::1] raw, int64_t[::1] normalized) except *
    @cython.locals(place=int64_t)
    cpdef void normalize_rows(
        self, tuple scale, int64_t[::1] raw, Py_ssize_t[::1] rows, Py_ssize_t count, int64_t[::1] normalized
    ) except *

cdef class StretchedScoreRule(ScaledScoreRule):
    cdef public bint reverse

    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(largest=int64_t, share=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807

cpdef tuple score_range(int64_t[::1] raw, uint8_t[::1] chosen, Py_ssize_t count)
