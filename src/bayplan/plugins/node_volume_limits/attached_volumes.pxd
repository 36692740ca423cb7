cimport cython

from bayplan.state.cluster_state cimport ClusterState

cdef class AttachedVolumes:
    cdef ClusterState _cluster
    cdef Py_ssize_t _position, _writes
    cdef dict _of_pods, _attached, _attached_volumes, _versions, _readers, _counts
    cdef tuple _nodes_seen
    cdef public object has_csi_node, limited
    cdef public dict limits, rows_of, errors
    cdef public Py_ssize_t version

    @cython.locals(row=Py_ssize_t)
    cpdef void refresh(self) except *
    cdef tuple _nodes(self)
    @cython.locals(known=list, infos=list, of_pods=list, same=Py_ssize_t)
    cdef void _update_row(self, Py_ssize_t row, bint placed=*) except *
    cdef void _count(self, Py_ssize_t row, object of_pod, Py_ssize_t change) except *
