cimport cython

from bayplan.cluster.admission cimport PodAdmission
from bayplan.cluster.kubelet cimport VirtualKubelet
from bayplan.cluster.store cimport ObjectStore
from bayplan.objects.struct_layouts cimport ObjectMeta, Pod, PodSpec, PodStatus

cdef class Arrival:
    cdef public ObjectStore _store
    cdef public VirtualKubelet _kubelet
    cdef public PodAdmission _admission
    cdef public object _names

    cpdef void apply(self, object item, object now_ns) except *
    @cython.locals(metadata=ObjectMeta)
    cdef object _named(self, object item)
    @cython.locals(metadata=ObjectMeta, spec=PodSpec, status=PodStatus)
    cdef void _create_pod(self, Pod pod, object now_ns) except *
