cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.plugins.scored_resources cimport ResourceScore
from bayplan.state.columns cimport Columns

# Constants of the .py, as C numbers.
cdef int64_t MAX_NODE_SCORE
cdef Py_ssize_t NON_ZERO_CPU, MEMORY

cdef class StrategyScore(ResourceScore):
    @cython.locals(
        columns=Columns, total=int64_t, weights=int64_t, place=Py_ssize_t, number=Py_ssize_t, allocatable=int64_t,
        requested=int64_t, share=int64_t,
    )
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807

cdef class LeastAllocated(StrategyScore):
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807

cdef class MostAllocated(StrategyScore):
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807

cdef class RequestedToCapacityRatio(StrategyScore):
    cdef int64_t[::1] _utilizations, _scores

    @cython.locals(
        columns=Columns, total=int64_t, weights=int64_t, place=Py_ssize_t, number=Py_ssize_t, allocatable=int64_t,
        requested=int64_t, share=int64_t,
    )
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807
    @cython.locals(points=Py_ssize_t, place=Py_ssize_t, start=int64_t, low=int64_t, rise=int64_t)
    cdef int64_t value_at(self, int64_t utilization) except? -9223372036854775807
