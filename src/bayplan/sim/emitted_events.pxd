from bayplan.engine.struct_layouts cimport Emit

cdef class EmittedEvents:
    cdef public dict _events
    cdef public list _scheduled

    cpdef void record(self, Emit emitted, object now_ns) except *
