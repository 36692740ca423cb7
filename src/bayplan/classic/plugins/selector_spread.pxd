cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule
from bayplan.state.counters cimport Counter

cdef double _MOST, _ZONE_WEIGHTING

cdef class OwnedPods(ScoreRule):
    cdef public object nodes
    cdef object _pods, _seen
    cdef public Counter counter
    cdef public Py_ssize_t[::1] domains
    cdef public Py_ssize_t count_of_domains
    cdef public int64_t[::1] by_domain

    cpdef bint refresh(self) except -1
    @cython.locals(counter=Counter)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(found=int64_t[::1])
    cpdef bytes sums(self, int64_t[::1] raw, uint8_t[::1] feasible)
    cpdef void decode_sums(self, tuple scale) except *

cdef class SpreadByZone(OwnedPods):
    cpdef void bind(self) except *
    @cython.locals(zoned=bint)
    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(most=int64_t, most_in_zone=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807

cdef class SpreadByLabel(OwnedPods):
    cdef str _label

    cpdef void bind(self) except *
    @cython.locals(pods=int64_t)
    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(pods=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
