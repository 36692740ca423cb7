cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule

cdef int64_t _FULL, _MOST
cdef double _MAX_AS_FLOAT

cdef class ResourceAmounts(ScoreRule):
    cdef public Py_ssize_t count
    cdef public Py_ssize_t[::1] numbers, usage_rows
    cdef public int64_t[::1] requests, weights

    cpdef int64_t requested(self, Py_ssize_t place, Py_ssize_t row) except? -9223372036854775807
    cpdef int64_t capacity(self, Py_ssize_t place, Py_ssize_t row) except? -9223372036854775807
    cpdef double fraction(self, Py_ssize_t place, Py_ssize_t row) except? -1.0

cdef class LeastRequested(ResourceAmounts):
    @cython.locals(weights=int64_t)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807

cdef class MostRequested(ResourceAmounts):
    @cython.locals(weights=int64_t)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807

cdef class Balance(ResourceAmounts):
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807

cdef class CapacityRatio(ResourceAmounts):
    cdef Py_ssize_t _points
    cdef int64_t[::1] _utilizations, _scores

    @cython.locals(requested=int64_t, capacity=int64_t)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(point=Py_ssize_t, x0=int64_t, y0=int64_t, rise=int64_t, run=int64_t)
    cpdef int64_t shaped(self, int64_t utilization) except? -9223372036854775807
