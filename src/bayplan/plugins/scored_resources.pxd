cimport cython
from libc.stdint cimport int64_t

from bayplan.framework.rule cimport ScoreRule

cdef Py_ssize_t FIRST_RESOURCE

cdef class ScoredResource:
    cdef readonly Py_ssize_t number
    cdef readonly int64_t weight, request

cdef class ResourceScore(ScoreRule):
    cdef readonly tuple scored
    cdef object _devices, _seen
    cdef list _tallies
    cdef public bint has_devices

    cpdef bint refresh(self) except -1
    @cython.locals(resource=ScoredResource)
    cdef int64_t allocatable(self, Py_ssize_t place, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(resource=ScoredResource)
    cdef int64_t requested(self, Py_ssize_t place, Py_ssize_t row) except? -9223372036854775807
