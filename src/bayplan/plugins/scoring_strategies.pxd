cimport cython
from libc cimport math
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule
from bayplan.plugins.scored_resources cimport ResourceScore, ScoredResource
from bayplan.state.columns cimport Columns

cdef int64_t MAX_NODE_SCORE, MAX_IN_DOUBLES, MAX_WEIGHT
cdef Py_ssize_t NON_ZERO_CPU, FIRST_RESOURCE, MEMORY, CHUNK

cdef class StrategyScore(ResourceScore):
    cdef public bint skips_zeros, rounds

    @cython.locals(resource=ScoredResource, columns=Columns)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807

cdef class LeastAllocated(StrategyScore):
    cpdef void score_all(self, int64_t[::1] raw) except *
    @cython.locals(
        resource=ScoredResource, columns=Columns, count=Py_ssize_t, place=Py_ssize_t, start=Py_ssize_t,
        length=Py_ssize_t, seen=int64_t, i=Py_ssize_t,
    )
    cdef int64_t _score_in_doubles(self, int64_t[::1] raw) except? -1
    @cython.locals(
        resource=ScoredResource, columns=Columns, number=Py_ssize_t, seen=int64_t, requested=int64_t, left=int64_t,
        i=Py_ssize_t,
    )
    cdef int64_t _add_in_doubles(self, Py_ssize_t place, Py_ssize_t start, Py_ssize_t length) except? -1
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807

cdef class MostAllocated(StrategyScore):
    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807

cdef class RequestedToCapacityRatio(StrategyScore):
    cdef int64_t[::1] _utilizations, _scores

    cdef int64_t share(self, int64_t requested, int64_t allocatable) except? -9223372036854775807
    @cython.locals(points=Py_ssize_t, place=Py_ssize_t)
    cdef int64_t value_at(self, int64_t utilization) except? -9223372036854775807
