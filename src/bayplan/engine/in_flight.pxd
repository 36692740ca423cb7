cimport cython

from bayplan.engine.struct_layouts cimport QueuedPod

cdef class InFlight:
    cdef dict _pods
    cdef list _events
    cdef Py_ssize_t _base

    cpdef bint start(self, QueuedPod queued) except -1
    @cython.locals(held=Py_ssize_t)
    cpdef void done(self, object uid) except *
    cpdef void append(self, object happened) except *
    cpdef list events_since_pop(self, object uid)
