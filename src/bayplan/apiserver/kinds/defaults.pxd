cimport cython

cdef class _Plan:
    cdef public tuple constants
    cdef public object function
    cdef public dict children
    @cython.locals(children=dict, child=tuple, plan=_Plan)
    cpdef object apply(self, object document)

cdef object _apply_inside(_Plan plan, object value, tuple containers)
