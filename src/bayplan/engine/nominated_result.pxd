cimport cython
from libc.stdint cimport int64_t

from bayplan.engine.changed_rows cimport ChangedRows
from bayplan.engine.plan cimport Plan
from bayplan.engine.what_if cimport Trial

# Constants of the .py, as C numbers.
cdef int64_t _PASSES

cdef class NominatedResult:
    cdef Plan _plan
    cdef ChangedRows _changed_rows
    cdef public object values
    cdef int64_t[::1] _values
    cdef public Py_ssize_t asked_rows, full_passes

    @cython.locals(rows=list)
    cpdef void refresh(self, object crowd) except *
    @cython.locals(trial=Trial, values=int64_t[::1], row=Py_ssize_t)
    cdef void _ask(self, list rows, object crowd) except *
