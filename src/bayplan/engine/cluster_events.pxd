cdef class ClusterEvents:
    cdef public object _scheduler

    cpdef list handle(self, object old, object new, object now_ns)
    cdef list _pod(self, object old, object new, object now_ns)
    cdef list _add_assigned_pod(self, object pod, object key, object now_ns)
