cdef class NodeTree:
    cdef dict _zones
    cdef object _order

    cpdef object order(self, dict row_of)
