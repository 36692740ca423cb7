cimport cython

cdef dict _known
cdef list _DIGITS

cpdef str format_time(object time_ns)

@cython.locals(minute=Py_ssize_t, of_minute=Py_ssize_t)
cdef str _format_second(object second)
