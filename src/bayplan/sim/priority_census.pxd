from bayplan.cluster cimport owned_pods
from bayplan.objects.struct_layouts cimport Pod

cdef class PriorityCensus:
    cdef public dict _counts

    cpdef void record(self, object old, object new) except *
    cdef void _count(self, object priority, object difference) except *

cdef object _priority_on_node(Pod pod)
