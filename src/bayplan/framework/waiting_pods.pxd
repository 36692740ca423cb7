cdef class WaitingPods:
    cdef public dict _pods
    cdef public list decided
