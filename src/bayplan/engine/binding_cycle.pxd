cimport cython

from bayplan.engine.queue cimport SchedulingQueue
from bayplan.engine.struct_layouts cimport QueuedPod
from bayplan.framework.cycle_state cimport CycleState
from bayplan.framework.profile cimport Profile

cdef class Binding:
    cdef public QueuedPod queued
    cdef public Profile profile
    cdef public object node_name
    cdef public tuple reserve, pre_bind
    cdef public CycleState cycle_state

cdef class BindingCycle:
    cdef public dict waiting, pending
    cdef public object _scheduler
    cdef SchedulingQueue _queue
    cdef public bint _nominates_expected

    cpdef object begin(self, Binding binding, object now_ns)
    cdef object _reserve_and_permit(self, Binding binding, object now_ns)
    cdef void _activate_pods(self, CycleState cycle_state, object now_ns) except *
    cdef object _bind(self, Binding binding, object now_ns)
    @cython.locals(binding=Binding)
    cpdef list succeeded(self, object key, object pod, object now_ns)

cdef object _run_bind_plugins(Profile profile, object cycle_state, object pod, object node_name)
