from bayplan.framework.rule cimport FilterRule

cdef class NamedNode(FilterRule):
    cdef str _name
    cdef object _nodes
    cdef Py_ssize_t _row

    cpdef void bind(self) except *
    cpdef int filter(self, Py_ssize_t row) except -1
