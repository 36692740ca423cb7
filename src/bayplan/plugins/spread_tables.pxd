cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.state.counters cimport DomainTable
from bayplan.state.row_log cimport LogReader

cdef int64_t NO_NODE

cdef class ConstraintTable:
    cdef public object key
    cdef public DomainTable sums, others
    cdef public int64_t max_skew, min_domains, itself, smallest
    cdef uint8_t[::1] _exists
    cdef Py_ssize_t _domains, _node_position
    cdef int64_t[::1] _others_before
    cdef bint _on_trial, _had_others
    cdef uint8_t[::1] _uneven
    cdef Py_ssize_t _uneven_at
    cdef object __weakref__

    cpdef void refresh(self) except *
    cpdef void after_changes(self) except *
    cdef void _find_domains(self) except *
    cdef void _find_smallest(self) except *
    @cython.locals(count=int64_t)
    cdef int64_t _sum(self, Py_ssize_t code) noexcept
    @cython.locals(moved=bint)
    cpdef bint mark_uneven(self) except -1
    @cython.locals(count=int64_t)
    cpdef bint is_uneven(self, Py_ssize_t code) noexcept

cdef class SpreadGroups:
    cdef public list tables
    cdef public bint requires_all_keys
    cdef public Py_ssize_t[::1] of_row
    cdef public Py_ssize_t count, regrouped
    cdef public int64_t[::1] parts
    cdef public uint8_t[::1] scored, by_node
    cdef dict _numbers
    cdef list _readers
    cdef object __weakref__

    @cython.locals(all_rows=bint, reader=LogReader, row=Py_ssize_t)
    cpdef void refresh(self, Py_ssize_t capacity, Py_ssize_t rows) except *
    @cython.locals(key=tuple)
    cdef void _regroup(self, Py_ssize_t row) except *
    @cython.locals(table=ConstraintTable)
    cdef object _part(self, Py_ssize_t number, Py_ssize_t row)
    @cython.locals(group=Py_ssize_t, width=Py_ssize_t, size=Py_ssize_t, number=Py_ssize_t)
    cdef Py_ssize_t _add(self, tuple key) except -1
