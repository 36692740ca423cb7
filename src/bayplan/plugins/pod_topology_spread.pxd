cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule, ScoreRule
from bayplan.plugins.spread_tables cimport ConstraintTable, SpreadGroups

cdef int64_t MAX_NODE_SCORE

cdef class HardSpread(FilterRule):
    cdef object _spread_tables
    cdef list _tables

    @cython.locals(moved=bint, table=ConstraintTable)
    cpdef bint refresh(self) except -1
    @cython.locals(table=ConstraintTable)
    cpdef void after_changes(self, object params) except *
    @cython.locals(table=ConstraintTable)
    cpdef int filter(self, Py_ssize_t row) except -1
    @cython.locals(table=ConstraintTable, last=Py_ssize_t, verdict=uint16_t[::1])
    cpdef void filter_all(self, uint16_t[::1] codes) except *

cdef class SoftSpread(ScoreRule):
    cdef object _spread_tables
    cdef list _tables
    cdef SpreadGroups _groups
    cdef Py_ssize_t _regrouped
    cdef int64_t[::1] _raw, _normalized
    cdef uint8_t[::1] _has_feasible, _seen
    cdef bint _some_not_scored
    cdef double[::1] _weights

    @cython.locals(table=ConstraintTable, domains=Py_ssize_t)
    cpdef void prepare(self, uint8_t[::1] feasible) except *
    @cython.locals(groups=SpreadGroups, size=Py_ssize_t)
    cdef Py_ssize_t _find_feasible_groups(self, uint8_t[::1] feasible) except -1
    @cython.locals(groups=SpreadGroups, width=Py_ssize_t, last=Py_ssize_t, count=Py_ssize_t, group=Py_ssize_t)
    cdef Py_ssize_t _count_domains(self, Py_ssize_t number, ConstraintTable table) except -1
    @cython.locals(
        groups=SpreadGroups, width=Py_ssize_t, number=Py_ssize_t, table=ConstraintTable, part=Py_ssize_t, pods=int64_t,
    )
    cdef int64_t _weigh(self, Py_ssize_t group) except? -9223372036854775807
    cdef void _check_prepared(self) except *
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    cpdef void score_all(self, int64_t[::1] raw) except *
    @cython.locals(groups=SpreadGroups)
    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    @cython.locals(not_scored=bytes)
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(smallest=int64_t, largest=int64_t)
    cdef int64_t _normalize_score(self, tuple scale, int64_t raw) except? -9223372036854775807
    @cython.locals(ignored=bint)
    cdef int64_t[::1] _normalize_groups(self, tuple scale)
    cpdef void normalize_all(self, tuple scale, int64_t[::1] raw, int64_t[::1] normalized) except *
    cpdef void normalize_rows(
        self, tuple scale, int64_t[::1] raw, Py_ssize_t[::1] rows, Py_ssize_t count, int64_t[::1] normalized
    ) except *
