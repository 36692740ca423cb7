from bayplan.engine.heap cimport PodHeap
from bayplan.engine.struct_layouts cimport QueuedPod

cdef class BackoffQueue:
    cdef readonly PodHeap rejected, failed
    cdef object _options, _sort_key

    cpdef object get(self, object key)
    cpdef void push(self, QueuedPod queued) except *
    cpdef bint discard(self, object key) except -1
    cpdef bint is_backing_off(self, QueuedPod queued, object now_ns) except -1
