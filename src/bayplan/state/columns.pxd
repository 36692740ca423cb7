from libc.stdint cimport int64_t, uint8_t

cdef class Columns:
    cdef public Py_ssize_t count
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t version
    cdef public bint bare
    cdef public Py_ssize_t counted
    cdef public int64_t[:, ::1] allocatable
    cdef public int64_t[:, ::1] usage
    cdef public int64_t[::1] allowed_pods
    cdef public Py_ssize_t[::1] taint_codes
    cdef public uint8_t[::1] alive
    cdef public uint8_t[::1] unschedulable
    cdef public double[:, ::1] scratch_floats
    cdef public int64_t[::1] scratch_integers
    cdef object __weakref__
