cimport cython

from bayplan.engine.queue_tiers cimport QueueTiers
from bayplan.engine.struct_layouts cimport QueuedPod

cdef class SchedulingQueue(QueueTiers):
    cdef public object scheduling_cycle
    cdef public bint closed
    cdef public object _hints, _pod_lister, _unschedulable_flushed_ns

    cpdef void add(self, object pod, object now_ns) except *
    cpdef void delete(self, object pod) except *
    @cython.locals(queued=QueuedPod)
    cpdef object pop(self)
    cpdef object move_all(self, object event, object old, object new, object now_ns, object pre_check=*)
    cpdef object _move(self, object movers, object event, object old, object new, object now_ns)
    cpdef void done(self, object uid) except *
    cpdef bint _activate(self, object pod, object now_ns) except -1
