cimport cython

from bayplan.framework.rule cimport FilterRule

cdef class General(FilterRule):
    cdef FilterRule _resources_rule
    cdef list _rules, _flags

    @cython.locals(rule=FilterRule)
    cpdef void bind(self) except *
    @cython.locals(verdict=int, number=Py_ssize_t, rule=FilterRule)
    cpdef int filter(self, Py_ssize_t row) except -1
