# The memory layouts of structs that compiled modules read for every pod: reading a field is then one load instead of a call of
# 150 instructions. A struct's fields are slots, which Python sorts by name. Importing a module fails if a struct has another
# size; tests/objects/test_struct_layouts.py compares names and positions.

cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *annotations, *creation_timestamp, *deletion_grace_period_seconds, *deletion_timestamp, *finalizers,
            *generate_name, *generation, *labels, *name, *namespace, *owner_references, *resource_version, *uid;
    } ObjectMetaFields;
    typedef struct {
        PyObject_HEAD
        PyObject *active_deadline_seconds, *affinity, *containers, *host_ipc, *host_network, *host_pid, *host_users,
            *hostname, *init_containers, *node_name, *node_selector, *os, *overhead, *preemption_policy, *priority,
            *priority_class_name, *readiness_gates, *resource_claims, *resources, *restart_policy,
            *runtime_class_name, *scheduler_name, *scheduling_gates, *scheduling_group, *service_account_name,
            *subdomain, *termination_grace_period_seconds, *tolerations, *topology_spread_constraints, *volumes;
    } PodSpecFields;
    typedef struct {
        PyObject_HEAD
        PyObject *last_probe_time, *last_transition_time, *message, *observed_generation, *reason, *status, *type;
    } PodConditionFields;
    typedef struct {
        PyObject_HEAD
        PyObject *allocated_resources, *conditions, *container_statuses, *extended_resource_claim_status, *host_ip,
            *init_container_statuses, *message, *node_allocatable_resource_claim_statuses, *nominated_node_name,
            *observed_generation, *phase, *pod_ip, *qos_class, *reason, *resize, *resource_claim_statuses, *resources,
            *start_time;
    } PodStatusFields;
    typedef struct {
        PyObject_HEAD
        ObjectMetaFields *metadata;
        PodSpecFields *spec;
        PodStatusFields *status;
    } PodFields;
    """
    ctypedef class bayplan.objects.meta.ObjectMeta [object ObjectMetaFields, check_size error]:
        cdef object annotations, creation_timestamp, deletion_grace_period_seconds, deletion_timestamp, finalizers
        cdef object generate_name, generation, labels, name, namespace, owner_references, resource_version, uid

    ctypedef class bayplan.objects.pod.PodSpec [object PodSpecFields, check_size error]:
        cdef object active_deadline_seconds, affinity, containers, host_ipc, host_network, host_pid, host_users
        cdef object hostname, init_containers, node_name, node_selector, os, overhead, preemption_policy, priority
        cdef object priority_class_name, readiness_gates, resource_claims, resources, restart_policy
        cdef object runtime_class_name, scheduler_name, scheduling_gates, scheduling_group, service_account_name
        cdef object subdomain, termination_grace_period_seconds, tolerations, topology_spread_constraints, volumes

    ctypedef class bayplan.objects.pod.PodCondition [object PodConditionFields, check_size error]:
        cdef object last_probe_time, last_transition_time, message, observed_generation, reason, status, type

    ctypedef class bayplan.objects.pod.PodStatus [object PodStatusFields, check_size error]:
        cdef object allocated_resources, conditions, container_statuses, extended_resource_claim_status, host_ip
        cdef object init_container_statuses, message, node_allocatable_resource_claim_statuses, nominated_node_name
        cdef object observed_generation, phase, pod_ip, qos_class, reason, resize, resource_claim_statuses, resources
        cdef object start_time

    ctypedef class bayplan.objects.pod.Pod [object PodFields, check_size error]:
        cdef ObjectMeta metadata
        cdef PodSpec spec
        cdef PodStatus status
