cdef class OperationSchedule:
    cdef public Py_ssize_t added
    cdef public list _operations
    cdef public bint _is_sorted

    cpdef void add(self, object time_ns, object operation) except *
    cpdef object next_ns(self)
    cpdef object pop(self)
