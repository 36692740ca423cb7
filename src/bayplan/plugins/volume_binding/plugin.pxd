from libc.stdint cimport uint16_t

from bayplan.framework.rule cimport FilterRule

cdef class VolumesOnNode(FilterRule):
    cdef object _plugin, _known
    cdef const uint16_t[::1] _codes

    cpdef bint refresh(self) except -1
    cpdef int filter(self, Py_ssize_t row) except -1
