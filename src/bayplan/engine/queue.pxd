from bayplan.engine.queue_tiers cimport QueueTiers

cdef class SchedulingQueue(QueueTiers):
    cdef public object scheduling_cycle
    cdef public bint closed
    cdef public object _hints, _pod_lister, _unschedulable_flushed_ns

    cpdef void add(self, object pod, object now_ns) except *
    cpdef object pop(self)
    cpdef void done(self, object uid) except *
    cpdef bint _activate(self, object pod, object now_ns) except -1
