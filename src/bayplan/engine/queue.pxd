cimport cython

from bayplan.engine cimport queued_pod
from bayplan.engine.backoff_queue cimport BackoffQueue
from bayplan.engine.heap cimport PodHeap
from bayplan.engine.hint_index cimport HintIndex
from bayplan.engine.in_flight cimport InFlight
from bayplan.engine.nominated_pods cimport Nominator
from bayplan.engine.struct_layouts cimport QueuedPod
from bayplan.engine.unschedulable_pods cimport RejectionGroup, UnschedulablePods
from bayplan.objects.struct_layouts cimport Pod

cdef class SchedulingQueue:
    cdef public object options, scheduling_cycle, _pod_lister, _sort_key, _unschedulable_flushed_ns
    cdef public Nominator nominator
    cdef public dict incoming, _pre_enqueue
    cdef public bint closed
    cdef public HintIndex _hints
    cdef public Py_ssize_t _sequence
    cdef public PodHeap _active
    cdef public InFlight _in_flight
    cdef public BackoffQueue _backoff
    cdef public UnschedulablePods _unschedulable
    cdef object __weakref__

    cpdef void add(self, object pod, object now_ns) except *
    cpdef object new_record(self, Pod pod, object now_ns)
    @cython.locals(plugins=tuple, pod=Pod)
    cpdef void _gate(self, QueuedPod queued) except *
    @cython.locals(pod=Pod)
    cpdef bint _to_active(self, QueuedPod queued, object now_ns, object label, bint from_backoff=*) except -1
    cpdef void _to_backoff(self, QueuedPod queued, object label) except *
    cpdef void _to_unschedulable(self, QueuedPod queued, object label) except *
    cpdef void _requeue(self, QueuedPod queued, object strategy, object now_ns, object label) except *
    @cython.locals(queued=QueuedPod)
    cpdef object pop(self)
    cdef bint _start(self, QueuedPod queued) except -1
    @cython.locals(group=RejectionGroup)
    cpdef object move_all(self, object event, object old, object new, object now_ns, object pre_check=*)
    @cython.locals(queued=QueuedPod)
    cpdef object _move(self, object movers, object happened, object now_ns)
    cpdef void done(self, object uid) except *
