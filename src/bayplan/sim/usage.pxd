cimport cython

from bayplan.state.cluster_state cimport ClusterState
from bayplan.state.pod_info cimport Footprint

cdef Py_ssize_t POD_COUNT, FIRST_RESOURCE

cdef class _Totals:
    cdef public Py_ssize_t nodes
    cdef public list requested, requested_moment, allocatable, allocatable_moment, peak, peak_ns, peak_allocatable
    cdef public dict times_ns

    cpdef void update_peak(self, object time_ns, Py_ssize_t number) except *

cdef class UsageMeter:
    cdef public ClusterState _state
    cdef public object _start_ns, _node_position
    cdef public Py_ssize_t _width
    cdef public _Totals _cluster
    cdef public dict _zones, _zone_of, _allocatable

    @cython.locals(zone=_Totals, totals=_Totals, footprint=Footprint, placements=list, number=Py_ssize_t)
    cpdef void settle(self, object now_ns) except *
    @cython.locals(requested=list, cluster=list, times_ns=dict, number=Py_ssize_t)
    cdef void _take_placement(self, _Totals zone, Footprint footprint, int sign, object time_ns) except *
