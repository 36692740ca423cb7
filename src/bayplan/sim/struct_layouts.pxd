# The memory layouts of structs that a simulation updates for every pod: see bayplan/objects/struct_layouts.pxd. The garbage
# collector does not track them, so compiled modules may also write their fields.

cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *decisions, *errors, *events, *evictions, *instants, *scheduled, *skipped, *unschedulable;
    } CountersFields;
    typedef struct {
        PyObject_HEAD
        PyObject *arrived_ns, *attempts, *bound_ns, *disruption, *ended_ns, *fate, *imported, *key, *last_failure_ns,
            *message, *node, *pod, *priority, *scheduler_name, *started_ns, *uid, *workload;
    } PodTimelineFields;
    """
    ctypedef class bayplan.sim.result.Counters [object CountersFields, check_size error]:
        cdef object decisions, errors, events, evictions, instants, scheduled, skipped, unschedulable

    ctypedef class bayplan.sim.result.PodTimeline [object PodTimelineFields, check_size error]:
        cdef object arrived_ns, attempts, bound_ns, disruption, ended_ns, fate, imported, key, last_failure_ns
        cdef object message, node, pod, priority, scheduler_name, started_ns, uid, workload
