cimport cython

from bayplan.cluster cimport owned_pods
from bayplan.cluster.kubelet cimport VirtualKubelet
from bayplan.cluster.store cimport ObjectStore
from bayplan.sim.virtual_api cimport Arrival
from bayplan.controllers.manager cimport ControllerManager
from bayplan.objects.struct_layouts cimport Pod

cdef class VirtualCluster:
    cdef public ObjectStore store
    cdef public object _wakeup_ns, _writer
    cdef public Arrival _arrival
    cdef public VirtualKubelet _kubelet
    cdef public bint _starts_at_once
    cdef public ControllerManager _manager
    cdef object __weakref__

    cpdef list apply(self, object item, object now_ns)
    @cython.locals(pod=Pod, known=bint)
    cpdef list bind(self, object pod_key, object node_name, object now_ns)
    cpdef object next_wakeup(self)
    cdef object _find_wakeup(self)
    cpdef list advance(self, object now_ns)
    cdef list _close(self, object now_ns)
