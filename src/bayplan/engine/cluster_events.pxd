cimport cython

from bayplan.engine cimport queued_pod
from bayplan.engine.scheduler cimport Scheduler
from bayplan.objects.struct_layouts cimport Pod
from bayplan.state.pod_info cimport PodInfo

cdef class ClusterEvents:
    cdef public Scheduler _scheduler

    cdef list _pod(self, Pod old, Pod new, object now_ns)
    @cython.locals(known=PodInfo)
    cdef list _add_assigned_pod(self, Pod pod, object key, object now_ns)
    cdef list _delete_pod(self, Pod pod, object now_ns)

@cython.locals(pod=Pod)
cdef object _unfinished(object item)
