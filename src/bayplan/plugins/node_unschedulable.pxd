from bayplan.framework.rule cimport FilterRule

cdef class Cordon(FilterRule):
    cdef bint _tolerated

    cpdef int filter(self, Py_ssize_t row) except -1
