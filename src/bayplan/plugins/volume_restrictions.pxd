cimport cython

from bayplan.framework.rule cimport FilterRule

cdef class FreeVolumes(FilterRule):
    cdef object _plugin, _spec, _cluster, _use
    cdef list _disks, _disk_rows
    cdef int _verdict

    cpdef bint refresh(self) except -1
    cpdef void after_changes(self, object params) except *
    cpdef void after_undo(self, object params) except *
    cdef void _look_up(self, object params) except *
    @cython.locals(rows=dict)
    cpdef int filter(self, Py_ssize_t row) except -1
