cimport cython
from libc.stdint cimport uint8_t

from bayplan.engine.select_host cimport NodeSampling, Sample
from bayplan.engine.filtered_rows cimport FilteredRows
from bayplan.engine.plan cimport Plan
from bayplan.engine.preparation cimport PreparationOutcome
from bayplan.framework.profile cimport Profile
from bayplan.objects.struct_layouts cimport Pod
from bayplan.state.cluster_state cimport ClusterState

cdef class ScheduleResult:
    cdef public Py_ssize_t row, feasible_nodes, evaluated_nodes, rejected_row
    cdef public Sample sample
    cdef public object ties, total, rejection, failure, diagnosis, nominated_failures, extended
    cdef public Plan scored_by
    cdef public bint chose_nominated_node_alone, check_all

@cython.locals(result=ScheduleResult, state=ClusterState, pre=PreparationOutcome)
cpdef ScheduleResult schedule_pod(
    Plan plan, Pod pod, object cycle_state, object nominated_pods, object pick, NodeSampling sampling=*,
    object extenders=*,
)

@cython.locals(state=ClusterState, narrowed=bint, count=Py_ssize_t, may_fail=bint)
cpdef object find_nodes_that_fit_pod(
    Plan plan, object nominated, object nominations, ScheduleResult result, NodeSampling sampling=*
)

@cython.locals(state=ClusterState, passes=uint8_t[::1], sample=Sample, filtered=FilteredRows, profile=Profile)
cdef void _search_sample(
    Plan plan, object feasible, ScheduleResult result, NodeSampling sampling, Py_ssize_t count, bint may_fail
) except *

@cython.locals(sample=Sample)
cpdef void prioritize_nodes(Plan plan, object feasible, ScheduleResult result) except *
