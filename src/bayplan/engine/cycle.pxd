cimport cython
from libc.stdint cimport uint8_t

from bayplan.engine.select_host cimport NodeSampling, Sample
from bayplan.engine.plan cimport Plan
from bayplan.objects.struct_layouts cimport Pod

cdef class ScheduleResult:
    cdef public Py_ssize_t row, feasible_nodes, evaluated_nodes, rejected_row
    cdef public Sample sample
    cdef public object ties, total, rejection, failure, diagnosis, nominated_failures, extended
    cdef public Plan scored_by
    cdef public bint chose_nominated_node_alone, check_all

cpdef ScheduleResult schedule_pod(
    Plan plan, Pod pod, object cycle_state, object nominated_pods, object pick, NodeSampling sampling=*,
    object extenders=*,
)

@cython.locals(narrowed=bint, count=Py_ssize_t, may_fail=bint)
cpdef object find_nodes_that_fit_pod(
    Plan plan, object nominated, object nominations, ScheduleResult result, NodeSampling sampling=*
)

@cython.locals(passes=uint8_t[::1])
cdef void _search_sample(
    Plan plan, object feasible, ScheduleResult result, NodeSampling sampling, Py_ssize_t count, bint may_fail
) except *

cpdef void prioritize_nodes(Plan plan, object feasible, ScheduleResult result) except *
