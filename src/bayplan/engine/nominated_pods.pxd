cimport cython
from libc.stdint cimport int64_t

from bayplan.objects.struct_layouts cimport Pod
from bayplan.state.cluster_state cimport ClusterState
from bayplan.state.pod_info cimport PodInfo
from bayplan.state.row_log cimport RowLog

cdef class Nominator:
    cdef public dict node_by_uid
    cdef dict _by_node, _changed
    cdef object _pod_lister

    cpdef void add(self, Pod pod, object nominated_node_name=*) except *
    cpdef void remove(self, object uid) except *

cdef class NominatedPods:
    cdef public dict infos
    cdef public int64_t floor
    cdef public Py_ssize_t own_row
    cdef object _own_uid

    @cython.locals(infos=dict, found=list, info=PodInfo)
    cpdef list pods_at(self, object row)

cdef class NominatedPodLister:
    cdef ClusterState _state
    cdef Nominator _nominator
    cdef object _pods
    cdef dict _infos
    cdef Py_ssize_t _node_position
    cdef public RowLog log

    @cython.locals(infos=dict)
    cdef void _apply_changes(self) except *
