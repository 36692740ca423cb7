cimport cython

from bayplan.engine.struct_layouts cimport QueuedPod
from bayplan.objects.struct_layouts cimport Pod

@cython.locals(known=Pod, pod=Pod, actions=list)
cpdef list handle_scheduling_failure(
    object scheduler, QueuedPod queued, object failure, object rejecting, object found, object now_ns, object pending=*
)
@cython.locals(victim=Pod)
cdef list _actuate_preemption(object scheduler, Pod preemptor, object found, object now_ns)
