cimport cython

from bayplan.cluster cimport owned_pods
from bayplan.cluster.store cimport ObjectStore
from bayplan.objects.struct_layouts cimport ObjectMeta, Pod

cdef class VirtualKubelet:
    cdef public ObjectStore _store
    cdef public object _pods, _options, _timers, _start_groups
    cdef public dict _runs
    cdef object __weakref__

    cpdef object add_pod(self, Pod pod, object now_ns)
    cpdef object _started(self, Pod pod, object now_ns)
    cpdef void _plan_end(self, Pod pod, object start_ns, object now_ns) except *
    cpdef object run_of(self, Pod pod)
    cpdef object next_wakeup(self)
    cpdef void advance(self, object now_ns) except *
    @cython.locals(pod=Pod)
    cpdef bint advance_one(self, object now_ns) except -1
    @cython.locals(metadata=ObjectMeta)
    cpdef void _set(self, object time_ns, object what, Pod pod, object exit_code=*) except *
