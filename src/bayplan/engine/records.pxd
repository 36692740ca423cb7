cdef class Records:
    cdef public object level, _hash, _names, _names_position, _order, _bare
    cdef public list _summaries, _frames
    cdef object __weakref__

    cpdef void add(self, object record, object plan, object result) except *
