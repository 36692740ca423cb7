cimport cython

from bayplan.engine.struct_layouts cimport QueuedPod
from bayplan.engine.unschedulable_pods cimport RejectionGroup

cdef class EventMatch:
    cdef public object event, label, gating_plugins, _matching
    cdef public bint of_interest
    cdef dict _hints

    cpdef object hints_for(self, tuple rejection)
    @cython.locals(queued=QueuedPod)
    cpdef list movers(self, RejectionGroup group, object old, object new)

cdef class HintIndex:
    cdef dict _table, _matches

    cpdef EventMatch match(self, object event)
