cimport cython

from bayplan.objects.struct_layouts cimport ObjectMeta, Pod, PodSpec, PodStatus
from bayplan.sim.struct_layouts cimport PodTimeline

cdef class Timelines:
    cdef public list pods, nodes
    cdef public dict _live_pods, _live_nodes, _by_workload
    cdef public object _workloads

    cpdef object of_pod(self, object key)
    cpdef void record(self, object old, object new, object now_ns) except *
    @cython.locals(spec=PodSpec, status=PodStatus, before=Pod, timeline=PodTimeline)
    cdef void _pod(self, Pod new, object now_ns) except *
