cimport cython

from bayplan.engine.heap cimport PodHeap
from bayplan.engine.struct_layouts cimport QueuedPod

cdef class RejectionGroup:
    cdef public object gating_plugin, rejection
    cdef public dict members

    cpdef void add(self, QueuedPod queued) except *
    cpdef void remove(self, object key) except *

cdef class UnschedulablePods:
    cdef public dict groups, overdue, group_of
    cdef readonly PodHeap ages

    @cython.locals(group=RejectionGroup)
    cpdef object get(self, object key)
    @cython.locals(group=RejectionGroup, old=RejectionGroup)
    cpdef void put(self, QueuedPod queued) except *
    cpdef object group_for(self, QueuedPod queued)
    @cython.locals(group=RejectionGroup)
    cpdef bint discard(self, object key) except -1
