cdef class WorkQueue:
    cdef public object due_ns, _queue, _timers
    cdef public set _queued
    cdef public dict _alarms, _waits
    cdef object __weakref__

    cpdef void add(self, tuple work) except *
    cpdef tuple pop(self)
    cpdef void schedule(self, object time_ns) except *
    cpdef object next_wakeup(self)
    cpdef void wake(self, object now_ns) except *
    cpdef void add_at(self, tuple work, object time_ns) except *
