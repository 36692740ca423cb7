cimport cython

from bayplan.engine.struct_layouts cimport QueuedPod

cdef class PodHeap:
    cdef readonly Py_ssize_t _live
    cdef object _tier
    cdef readonly list _entries

    cpdef void push(self, QueuedPod queued, object key) except *
    @cython.locals(queued=QueuedPod)
    cpdef object pop(self)
    @cython.locals(queued=QueuedPod)
    cpdef object peek(self)
    cpdef void discard(self, QueuedPod queued) except *
    cpdef void reorder(self, QueuedPod queued, object key) except *
