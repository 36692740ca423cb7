cimport cython

from bayplan.cluster.admission cimport PodAdmission
from bayplan.cluster.store cimport ObjectStore
from bayplan.controllers.work_queue cimport WorkQueue
from bayplan.objects.struct_layouts cimport Pod
from bayplan.cluster.struct_layouts cimport ChangeEvent

cdef class ControllerManager:
    cdef public ObjectStore _store
    cdef public dict _by_kind, _by_owner, _watchers, _failed, problems
    cdef public tuple _others
    cdef public list _pod_watchers
    cdef public object _garbage_collector, _pod_gc, _node_lifecycle, _sync_delay_ns
    cdef public WorkQueue _work
    cdef public PodAdmission _admission
    cdef public Py_ssize_t _position
    cdef public bint _retries
    cdef object __weakref__

    cpdef void follow(self, object now_ns) except *
    cpdef void close(self, object now_ns) except *
    cdef void _observe_journal(self) except *
    cdef void _observe_pod(self, object event, Pod pod) except *
    cdef void _observe(self, object event) except *
    cdef void _notify_owners(self, object event) except *
    cdef void _notify_owner(self, object event, object owner) except *
    cdef void _notify_watchers(self, object event, object watchers) except *
    cpdef object next_wakeup(self)
    @cython.locals(queue=WorkQueue)
    cpdef void run(self, object now_ns) except *
    @cython.locals(queue=WorkQueue)
    cpdef bint step(self, object now_ns) except *
    cdef void _process_next(self, object now_ns) except *
