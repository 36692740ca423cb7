from bayplan.framework.rule cimport FilterRule

cdef class FreePorts(FilterRule):
    cdef tuple _ports
    cdef object _host_ports

    cpdef int filter(self, Py_ssize_t row) except -1
