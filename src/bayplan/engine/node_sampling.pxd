cimport cython
from libc.stdint cimport uint8_t

@cython.locals(
    count=Py_ssize_t, chosen=Py_ssize_t[::1], found=Py_ssize_t, visited=Py_ssize_t, place=Py_ssize_t, step=Py_ssize_t,
    row=Py_ssize_t,
)
cpdef tuple walk(Py_ssize_t[::1] order, uint8_t[::1] feasible, Py_ssize_t start, Py_ssize_t wanted)
