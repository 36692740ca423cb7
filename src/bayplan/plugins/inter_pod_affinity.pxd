cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule
from bayplan.plugins cimport normalize_score
from bayplan.plugins.normalize_score cimport ScaledScoreRule
from bayplan.state.counters cimport DomainTable

cdef int64_t MAX_NODE_SCORE

cdef class RequiredTerms(FilterRule):
    cdef object _term_tables
    cdef Py_ssize_t _version, _tables_version
    cdef list _affinity, _anti, _existing, _tables
    cdef bint _matches_itself, _first_of_group

    @cython.locals(tables_version=Py_ssize_t, first=bint, table=DomainTable)
    cpdef bint refresh(self) except -1
    @cython.locals(table=DomainTable)
    cpdef int filter(self, Py_ssize_t row) except -1

cdef class WeightedTerms(ScaledScoreRule):
    cdef object _weighted, _seen
    cdef list _tables, _weights
    cdef Py_ssize_t _tables_version

    @cython.locals(moved=bint, tables_version=Py_ssize_t, table=DomainTable)
    cpdef bint refresh(self) except -1
    @cython.locals(table=DomainTable)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(table=DomainTable, weight=int64_t)
    cpdef void score_all(self, int64_t[::1] raw) except *
    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    cpdef int64_t level(self, tuple scale) except? -9223372036854775807
    @cython.locals(smallest=int64_t, largest=int64_t)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
