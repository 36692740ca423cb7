cdef class CycleState:
    cdef public object now_ns
    cdef public object unreached_pre_filters, pods_to_activate
    cdef dict _data
    cdef object __weakref__

    cpdef void write(self, object key, object item) except *
    cpdef object read(self, object key, object kind)
    cpdef void delete(self, object key) except *
