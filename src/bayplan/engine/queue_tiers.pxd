cimport cython

from bayplan.engine.heap cimport PodHeap
from bayplan.engine.in_flight cimport InFlight
from bayplan.engine.struct_layouts cimport QueuedPod
from bayplan.objects.struct_layouts cimport ObjectMeta, Pod

cdef class QueueTiers:
    cdef public object options, nominator, incoming
    cdef public object _incoming_active, _incoming_backoff, _incoming_unschedulable
    cdef public dict _pre_enqueue, _records
    cdef public object _sort_key, _backoff, _unschedulable
    cdef public bint _pop_from_backoff
    cdef public Py_ssize_t _sequence
    cdef public PodHeap _active
    cdef public InFlight _in_flight
    cdef object __weakref__

    @cython.locals(metadata=ObjectMeta)
    cpdef object new_record(self, Pod pod, object now_ns)
    @cython.locals(plugins=tuple, pod=Pod)
    cpdef void _gate(self, QueuedPod queued) except *
    @cython.locals(pod=Pod, present=QueuedPod)
    cpdef bint _to_active(self, QueuedPod queued, object now_ns, object label, bint from_backoff=*) except -1
    cpdef void _to_backoff(self, QueuedPod queued, object label) except *
    cpdef void _to_unschedulable(self, QueuedPod queued, object label) except *
    cpdef void _requeue(self, QueuedPod queued, object strategy, object now_ns, object label) except *
    cdef void _leave(self, QueuedPod queued, object tiers) except *
