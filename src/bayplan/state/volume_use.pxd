cimport cython

from bayplan.state.cluster_state cimport ClusterState
from bayplan.state.row_log cimport RowLog

@cython.locals(log=RowLog)
cpdef object moved_rows(ClusterState state, Py_ssize_t position)
cpdef list pods_with_volumes(ClusterState state, Py_ssize_t row)
cpdef bint has_volumes(tuple volumes) except -1
