from libc.stdint cimport int64_t

from bayplan.framework.rule cimport FilterRule
from bayplan.plugins.normalize_score cimport StretchedScoreRule

cdef class TaintFilter(FilterRule):
    cdef object _table, _taint_sets
    cdef int64_t[::1] _verdicts

    cpdef void bind(self) except *
    cpdef int filter(self, Py_ssize_t row) except -1

cdef class TaintScore(StretchedScoreRule):
    cdef object _table, _taint_sets
    cdef int64_t[::1] _counts

    cpdef void bind(self) except *
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
