cimport cython
from libc.stdint cimport int64_t

from bayplan.framework.rule cimport ScoreRule

cdef Py_ssize_t FIRST_RESOURCE

cdef class ResourceScore(ScoreRule):
    cdef public Py_ssize_t count
    cdef tuple _scored
    cdef object _devices, _seen
    cdef public Py_ssize_t[::1] numbers
    cdef public int64_t[::1] weights, requests
    cdef list _tallies
    cdef public bint has_devices

    cpdef bint refresh(self) except -1
    @cython.locals(own=int64_t)
    cdef int64_t allocatable(self, Py_ssize_t place, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(number=Py_ssize_t)
    cdef int64_t requested(self, Py_ssize_t place, Py_ssize_t row) except? -9223372036854775807
