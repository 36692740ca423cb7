cimport cython

from bayplan.engine.queue cimport SchedulingQueue
from bayplan.engine.struct_layouts cimport QueuedPod

cdef class EventDrivenQueue(SchedulingQueue):
    cdef public bint timed_retries
    cdef public object retry_predictor, _listening, _tried_head
    cdef public bint _groups_by_plan
    cdef public dict _woken, _plan_group_of_head

    cpdef object pop(self)
    cpdef void delete(self, object pod) except *
    cpdef void _to_unschedulable(self, QueuedPod queued, object label) except *
    cpdef void _requeue(self, QueuedPod queued, object strategy, object now_ns, object label) except *
