from bayplan.framework.rule cimport FilterRule

cdef class DeclaredFeatures(FilterRule):
    cdef object _needed, _nodes
    cdef bint _enabled

    cpdef int filter(self, Py_ssize_t row) except -1
