from bayplan.state.node_tree cimport NodeTree

cdef class NodeTable:
    cdef public dict resources, row_of
    cdef public list names, nodes, free_rows, taint_sets
    cdef public Py_ssize_t count, capacity
    cdef public object alive, allocatable, allowed_pods, unschedulable, taint_codes, images
    cdef public NodeTree tree
    cdef public dict _taint_index, _labels
