cimport cython

from bayplan.engine.binding_cycle cimport BindingCycle
from bayplan.engine.cycle cimport ScheduleResult
from bayplan.engine cimport cycle
from bayplan.engine.plan cimport Plan
from bayplan.engine.plan_cache cimport PlanCache
from bayplan.engine.queue cimport SchedulingQueue
from bayplan.engine.records cimport Records
from bayplan.engine.struct_layouts cimport QueuedPod
from bayplan.framework.profile cimport Profile
from bayplan.framework.waiting_pods cimport WaitingPods
from bayplan.objects.struct_layouts cimport Pod
from bayplan.state.cluster_state cimport ClusterState

cdef class Scheduler:
    cdef public ClusterState state
    cdef public PlanCache plans
    cdef public WaitingPods waiting_pods
    cdef public tuple missing_plugins
    cdef public SchedulingQueue queue
    cdef public dict profiles, pods, assumed
    cdef public Records records
    cdef public bint survives_plugins
    cdef public BindingCycle bindings
    cdef public object nominated_pods, extenders, sampling, _pick, _events
    cdef object __weakref__

    @cython.locals(profile=Profile, pod=Pod)
    cpdef object _schedule(self, QueuedPod queued, object now_ns)
    @cython.locals(pod=Pod)
    cpdef bint _skip_pod_schedule(self, QueuedPod queued) except -1
    cpdef void record(
        self, QueuedPod queued, object outcome, Plan plan, ScheduleResult result, object now_ns, object node=*, object message=*,
        object nominated=*, object victims=*,
    ) except *
    cpdef object _unschedulable(
        self, QueuedPod queued, object profile, Plan plan, ScheduleResult result, object cycle_state, object now_ns
    )
    cpdef void assume(self, Plan plan, object pod, object key, Py_ssize_t row) except *
    @cython.locals(known=Pod, pod=Pod)
    cpdef list handle_scheduling_failure(
        self, QueuedPod queued, object failure, object rejecting, object found, object now_ns, object pending=*
    )
    @cython.locals(victim=Pod)
    cdef list _actuate_preemption(self, Pod preemptor, object found, object node_name, object now_ns)
