# The memory layouts of structs of the engine: see bayplan/objects/struct_layouts.pxd. The garbage collector does not track them,
# so compiled modules may also write the fields of `QueuedPod`.

cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *attempts, *backoff_expiry_ns, *error_count, *flushed, *gating_plugin, *initial_attempt_ns, *key,
            *pending_plugins, *pod, *popped_at, *sequence, *timestamp_ns, *uid, *unschedulable_count,
            *unschedulable_plugins;
    } QueuedPodFields;
    """
    ctypedef class bayplan.engine.queued_pod.QueuedPod [object QueuedPodFields, check_size error]:
        cdef object attempts, backoff_expiry_ns, error_count, flushed, gating_plugin
        cdef object initial_attempt_ns, key, pending_plugins, pod, popped_at, sequence, timestamp_ns, uid
        cdef object unschedulable_count, unschedulable_plugins
