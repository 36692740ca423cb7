cimport cython

from bayplan.objects.struct_layouts cimport Pod
from bayplan.state cimport pod_moves
from bayplan.state.columns cimport Columns
from bayplan.state.node_table cimport NodeTable
from bayplan.state.object_catalog cimport ObjectCatalog
from bayplan.state.pod_info cimport Footprint, PodClass, PodInfo
from bayplan.state.row_log cimport RowLog

cdef class ClusterState:
    cdef public object request_gates, usage, host_ports, counters, placements
    cdef public NodeTable nodes
    cdef public ObjectCatalog catalog
    cdef public dict pods
    cdef public list pods_on
    cdef public Columns columns
    cdef public RowLog change_log, node_log, pod_log
    cdef public dict _priorities
    cdef public object _classes, _account, _largest_sum, small
    cdef object _journal, _footprints
    cdef object __weakref__

    @cython.locals(amounts=dict)
    cpdef Footprint footprint(self, Pod pod, object earlier_sums=*)
    cpdef PodClass pod_class(self, Pod pod)
    cpdef tuple owned_counters(self, object pod)
    cpdef PodInfo pod_info(self, Pod pod)
    cpdef object register_resource(self, object name)
    @cython.locals(footprint=Footprint)
    cpdef void place(self, PodInfo info, Py_ssize_t row) except *
    cpdef void _move(self, PodInfo info, Py_ssize_t row, Py_ssize_t sign) except *
    @cython.locals(nodes=dict, alike=Py_ssize_t, as_important=Py_ssize_t)
    cpdef void shift(self, PodInfo info, Py_ssize_t row, Py_ssize_t sign) except *
    @cython.locals(info=PodInfo)
    cpdef PodInfo remove_pod(self, object key)
    @cython.locals(before=Pod)
    cpdef void replace_pod_version(self, PodInfo info, Pod pod) except *
