cimport cython

from bayplan.engine.struct_layouts cimport QueuedPod

cdef class PodHeap:
    cdef dict _entries
    cdef readonly object _in_order
    cdef readonly list _heap

    @cython.locals(entry=tuple)
    cpdef object get(self, object key)
    cpdef void push(self, QueuedPod queued, object sort_key) except *
    @cython.locals(entry=tuple, queued=QueuedPod)
    cpdef object pop(self)
    cpdef object peek(self)
    cdef tuple _first(self)
    @cython.locals(queued=QueuedPod)
    cdef bint _counts(self, tuple entry) except -1
    cpdef bint discard(self, object key) except -1
