cdef class Profile:
    cdef public object scheduler_name, handle, percentage_of_nodes_to_score, custom_plugins, sums_before_binding, _ordered
    cdef public dict plugins
    cdef public tuple pre_enqueue, queue_sort, pre_filter, filter, post_filter, pre_score, score, reserve, permit, pre_bind, bind
    cdef public tuple post_bind, compiling, signing
    cdef public frozenset compiling_requests, compiling_volumes
