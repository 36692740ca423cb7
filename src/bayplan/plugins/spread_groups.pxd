cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.plugins.spread_tables cimport ConstraintTable
from bayplan.state.counters cimport Counter
from bayplan.state.row_log cimport RowLog

cdef class SpreadGroups:
    cdef public list tables
    cdef public bint requires_all_keys, all_scored
    cdef public RowLog node_log
    cdef public Py_ssize_t[::1] of_row
    cdef public Py_ssize_t count, regrouped
    cdef public int64_t[::1] parts
    cdef public uint8_t[::1] scored, by_node
    cdef dict _numbers
    cdef Py_ssize_t _node_position
    cdef Py_ssize_t[::1] _positions
    cdef object __weakref__

    @cython.locals(
        whole=bint, node_log=RowLog, start=Py_ssize_t, position=Py_ssize_t, number=Py_ssize_t, before=Py_ssize_t,
        table=ConstraintTable,
    )
    cpdef void refresh(self, Py_ssize_t capacity, Py_ssize_t rows) except *
    @cython.locals(row=Py_ssize_t)
    cdef void _regroup_all(self, Py_ssize_t capacity, Py_ssize_t rows) except *
    @cython.locals(table=ConstraintTable, counter=Counter, position=Py_ssize_t)
    cdef void _follow(self, Py_ssize_t number) except *
    @cython.locals(key=tuple, number=Py_ssize_t)
    cdef void _regroup(self, Py_ssize_t row) except *
    @cython.locals(table=ConstraintTable, code=Py_ssize_t)
    cdef object _part(self, Py_ssize_t number, Py_ssize_t row)
    @cython.locals(group=Py_ssize_t, width=Py_ssize_t, size=Py_ssize_t, number=Py_ssize_t)
    cdef Py_ssize_t _add(self, tuple key) except -1
