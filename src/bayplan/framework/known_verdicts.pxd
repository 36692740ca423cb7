from libc.stdint cimport uint16_t

from bayplan.framework.rule cimport FilterRule

cdef class KnownVerdicts(FilterRule):
    cdef object _find, _known
    cdef const uint16_t[::1] _codes

    cpdef bint refresh(self) except -1
    cpdef void after_changes(self, object params) except *
    cpdef void after_undo(self, object params) except *
    cpdef int filter(self, Py_ssize_t row) except -1
