cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule, ScoreRule
from bayplan.plugins.spread_tables cimport ConstraintTable

# Constants of the .py, as C numbers.
cdef int64_t MAX_NODE_SCORE

cdef class HardSpread(FilterRule):
    cdef object _plugin, _spec, _cluster, _seen
    cdef list _tables

    @cython.locals(moved=bint, before=int64_t, number=Py_ssize_t, table=ConstraintTable)
    cpdef bint refresh(self) except -1
    @cython.locals(number=Py_ssize_t, table=ConstraintTable)
    cpdef void after_changes(self, object params) except *
    @cython.locals(number=Py_ssize_t, table=ConstraintTable, code=Py_ssize_t)
    cpdef int filter(self, Py_ssize_t row) except -1

cdef class SoftSpread(ScoreRule):
    cdef object _plugin, _spec, _cluster
    cdef list _tables
    cdef bint _requires_all_keys, _complete
    cdef Py_ssize_t _node_position
    cdef double[::1] _weights, _skews, _worths
    cdef Py_ssize_t[::1] _offsets
    cdef uint8_t[::1] _seen_domains, _by_node

    @cython.locals(number=Py_ssize_t, table=ConstraintTable, size=Py_ssize_t)
    cpdef void prepare(self, uint8_t[::1] feasible) except *
    cdef void _lay_out(self) except *
    @cython.locals(weight=double, skew=double, start=Py_ssize_t, values=int64_t[::1], code=Py_ssize_t)
    cdef void _weigh_domains(self, Py_ssize_t number, ConstraintTable table) except *
    @cython.locals(count=Py_ssize_t, row=Py_ssize_t)
    cdef Py_ssize_t _count_nodes(self, uint8_t[::1] feasible) except -1
    @cython.locals(
        codes=Py_ssize_t[::1], last=Py_ssize_t, seen=uint8_t[::1], count=Py_ssize_t, row=Py_ssize_t, code=Py_ssize_t,
    )
    cdef Py_ssize_t _count_domains(self, ConstraintTable table, uint8_t[::1] feasible) except -1
    @cython.locals(number=Py_ssize_t, table=ConstraintTable)
    cdef bint is_scored(self, Py_ssize_t row) except -1
    @cython.locals(
        total=double, number=Py_ssize_t, table=ConstraintTable, code=Py_ssize_t, weight=double,
    )
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(smallest=int64_t, largest=int64_t, score=int64_t, seen=bint, left_out=bint, row=Py_ssize_t)
    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(smallest=int64_t, largest=int64_t, left_out=bytes)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(smallest=int64_t, largest=int64_t, left_out=bytes, row=Py_ssize_t)
    cpdef void normalize_all(self, tuple scale, int64_t[::1] raw, int64_t[::1] normalized) except *

cdef inline int64_t evened(int64_t raw, int64_t smallest, int64_t largest) except? -9223372036854775807
