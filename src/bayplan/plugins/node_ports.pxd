from bayplan.framework.rule cimport FilterRule

cdef class FreePorts(FilterRule):
    cdef tuple _ports
    cdef object _host_ports
    cdef list _conflicts

    cpdef void bind(self) except *
    cpdef int filter(self, Py_ssize_t row) except -1
