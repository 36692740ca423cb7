cimport cython
from libc.stdint cimport int64_t

from bayplan.classic.plugins.pod_changes cimport CountingRule
from bayplan.framework.rule cimport ScoreRule

cdef int _NOT_SPREAD

cdef class ConstraintTest:
    cdef Py_ssize_t[::1] _codes
    cdef int64_t[::1] _sums
    cdef int64_t _most

    cpdef bint broken(self, Py_ssize_t row) except -1

cdef class EvenDomains(CountingRule):
    cdef object _spec, _cluster, _seen
    cdef int _error
    cdef dict _domains
    cdef list _tests

    cpdef void bind(self) except *
    cpdef bint refresh(self) except -1
    @cython.locals(test=ConstraintTest)
    cpdef int filter(self, Py_ssize_t row) except -1

cdef class PodsInDomains(ScoreRule):
    cdef object _spec, _cluster, _seen
    cdef Py_ssize_t _count
    cdef list _codes, _sums
