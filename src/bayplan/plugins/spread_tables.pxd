cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.state.counters cimport Counter, DomainTable

# Constants of the .py, as C numbers.
cdef int64_t NO_NODE

cdef class ConstraintTable:
    cdef public object constraint, key, eligibility
    cdef public Counter counter
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
    @cython.locals(smallest=int64_t, count=int64_t, code=Py_ssize_t)
    cdef void _find_smallest(self) except *
    @cython.locals(count=int64_t)
    cdef int64_t _sum(self, Py_ssize_t code) noexcept
    @cython.locals(moved=bint, uneven=bint, code=Py_ssize_t)
    cpdef bint mark_uneven(self) except -1
    cpdef int64_t count(self, Py_ssize_t code) noexcept
    cpdef bint is_uneven(self, Py_ssize_t code) noexcept
