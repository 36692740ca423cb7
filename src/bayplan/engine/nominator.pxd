from bayplan.objects.struct_layouts cimport Pod

cdef class Nominator:
    cdef public dict node_by_uid
    cdef dict _by_node, _changed
    cdef object _pod_lister

    cpdef void add(self, Pod pod, object nominated_node_name=*) except *
    cpdef void remove(self, object uid) except *
