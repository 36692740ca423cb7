cimport cython

from bayplan.cluster.struct_layouts cimport ChangeEvent
from bayplan.engine.scheduler cimport Scheduler
from bayplan.sim.operation_schedule cimport OperationSchedule
from bayplan.sim.struct_layouts cimport Counters, PodTimeline
from bayplan.sim.timelines cimport Timelines
from bayplan.sim.usage cimport UsageMeter
from bayplan.sim.virtual_cluster cimport VirtualCluster

cdef class Simulator:
    cdef public Scheduler scheduler
    cdef public VirtualCluster cluster
    cdef public object seed, start_ns, now_ns, agents, _progress, _timer_ns, _stopped, _events, _last_given_ns, _active_ns
    cdef public dict failures, _tried
    cdef public Counters counters
    cdef public bint _check, _strict
    cdef public OperationSchedule _operations
    cdef public Py_ssize_t _changes, _all_tried_at, _progress_due
    cdef public Timelines _timelines
    cdef public UsageMeter _usage
    cdef object __weakref__

    cpdef void at(self, object time_ns, object operation) except *
    cdef void _schedule(self, object time_ns, object operation) except *
    cdef object _next_instant(self)
    cdef void _stop(self, object end_ns, object why) except *
    cdef void _instant(self, object now_ns) except *
    @cython.locals(operations=OperationSchedule)
    cdef void _run_operations(self, object now_ns) except *
    cdef bint _run_agents(self, object now_ns) except -1
    cdef void _operate(self, object operation, object now_ns) except *
    @cython.locals(scheduler=Scheduler, counters=Counters, change=ChangeEvent)
    cdef void _take(self, object changes, object now_ns) except *
    @cython.locals(scheduler=Scheduler)
    cdef void _empty_queue(self, object now_ns) except *
    @cython.locals(counters=Counters, timeline=PodTimeline)
    cdef void _note(self, object report) except *
    cdef void _execute(self, object actions, object now_ns) except *
    @cython.locals(cluster=VirtualCluster, scheduler=Scheduler)
    cdef object _write_for_binding(self, object action, object key, object now_ns)
    cdef void _report_progress(self, object report) except *
