cimport cython
from libc.stdint cimport int64_t, uint8_t

# Constants of the .py, as C numbers.
cdef int64_t _MAX, _MIN

@cython.locals(smallest=int64_t, score=int64_t, row=Py_ssize_t)
cpdef int64_t smallest_score(int64_t[::1] raw, uint8_t[::1] chosen, Py_ssize_t count) noexcept
@cython.locals(largest=int64_t, score=int64_t, row=Py_ssize_t)
cpdef int64_t largest_score(int64_t[::1] raw, uint8_t[::1] chosen, Py_ssize_t count) noexcept
@cython.locals(smallest=int64_t, row=Py_ssize_t)
cpdef int64_t lowest(int64_t[::1] raw, Py_ssize_t count) noexcept
@cython.locals(largest=int64_t, row=Py_ssize_t)
cpdef int64_t highest(int64_t[::1] raw, Py_ssize_t count) noexcept
@cython.locals(row=Py_ssize_t)
cpdef void look_up(int64_t[::1] raw, int64_t first, int64_t[::1] table, int64_t[::1] found, Py_ssize_t count) noexcept
