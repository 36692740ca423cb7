cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.state.row_log cimport LogReader, RowLog

cdef class Counter:
    cdef public object values, matches, term
    cdef public int64_t[::1] counts
    cdef public int64_t total
    cdef public Py_ssize_t number
    cdef public RowLog log
    cdef object __weakref__

    cpdef void add(self, Py_ssize_t row, int64_t count) except *
    cpdef void grow(self, Py_ssize_t capacity) except *

cdef class DomainTable:
    cdef public object key, nodes, eligibility
    cdef public Counter counter
    cdef public RowLog node_log
    cdef public Py_ssize_t[::1] codes
    cdef public int64_t[::1] values
    cdef public Py_ssize_t last, version, positive_version, positive, node_position
    cdef public bint distinct
    cdef uint8_t[::1] _mask
    cdef bint _has_mask
    cdef LogReader _changes
    cdef object __weakref__

    @cython.locals(change=Py_ssize_t, before=int64_t)
    cpdef void refresh(self) except *
    cdef void _sum_up(self) except *
    cpdef bint some(self) except -1
