cimport cython

cdef class PodHeap:
    cdef readonly Py_ssize_t _live
    cdef object _tier
    cdef readonly list _entries

    cpdef void push(self, object queued, object key) except *
    cpdef object pop(self)
    cpdef object peek(self)
    cpdef void discard(self, object queued) except *
    cpdef void reorder(self, object queued, object key) except *
