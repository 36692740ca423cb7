from libc.stdint cimport uint16_t

from bayplan.framework.rule cimport FilterRule

cdef class General(FilterRule):
    cdef object _spec, _cluster
    cdef FilterRule _resources_rule, _ports_rule
    cdef uint16_t[::1] _of_nodes

    cpdef void bind(self) except *
    cpdef int filter(self, Py_ssize_t row) except -1
