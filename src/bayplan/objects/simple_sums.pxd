cimport cython

from bayplan.objects.struct_layouts cimport Pod, PodSpec, PodStatus

@cython.locals(amounts=dict)
cpdef dict rounded_up(dict sums)
cpdef dict on_nodes(dict amounts)
cdef dict _with_missing(dict nanos, dict silent, object missing)

cdef class SimpleSums:
    cdef tuple _known

    @cython.locals(known=tuple)
    cpdef object of(self, Pod pod)
    @cython.locals(spec=PodSpec, status=PodStatus, nanos=dict, silent=dict)
    cdef object _make(self, Pod pod)
