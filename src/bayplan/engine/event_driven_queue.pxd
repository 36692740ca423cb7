from bayplan.engine.queue cimport SchedulingQueue
from bayplan.engine.struct_layouts cimport QueuedPod

cdef class EventDrivenQueue(SchedulingQueue):
    cdef public bint timed_retries, _groups_by_plan
    cdef public object retry_predictor, _tried_head
    cdef public dict _listening, _woken, _plan_group_of_head

    cpdef object pop(self)
    cpdef void _to_unschedulable(self, QueuedPod queued, object label) except *
    cpdef void _requeue(self, QueuedPod queued, object strategy, object now_ns, object label) except *
