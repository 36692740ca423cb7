cdef class NodeTree:
    cdef public dict _zones
    cdef public object _order

    cpdef object order(self, dict row_of)
