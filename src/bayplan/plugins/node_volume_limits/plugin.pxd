cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.framework.rule cimport FilterRule

cdef class DriverLimit:
    cdef int64_t[::1] _limits, _counts
    cdef int64_t _fresh
    cdef list _in_use

    @cython.locals(wanted=int64_t, rows=dict)
    cpdef bint exceeded(self, Py_ssize_t row) except -1

cdef class AttachableVolumes(FilterRule):
    cdef object _plugin, _spec, _plain, _migrated, _attached
    cdef list _limits
    cdef uint8_t[::1] _has_csi_node
    cdef int _problem_on_plain, _problem_on_migrated
    cdef bint _has_errors, _needs_drivers

    cpdef bint refresh(self) except -1
    @cython.locals(migrated=bint, verdict=int, limit=DriverLimit)
    cpdef int filter(self, Py_ssize_t row) except -1
    cdef int _verdict_of_error(self, Py_ssize_t row, int verdict) except -1
