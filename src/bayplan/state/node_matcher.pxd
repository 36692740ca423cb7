cimport cython
from libc.stdint cimport uint8_t

cdef class LabelTest:
    cdef object _requirement, _nodes
    cdef Py_ssize_t[::1] _codes
    cdef uint8_t[::1] _matching
    cdef Py_ssize_t _last

    cpdef void bind(self) except *
    @cython.locals(code=Py_ssize_t)
    cpdef bint matches(self, Py_ssize_t row) except -1
    cpdef bint has_key(self, Py_ssize_t row) except -1

cdef class TermMatcher:
    cdef object _nodes, _fields
    cdef bint _never
    cdef list _tests, _wanted_rows

    @cython.locals(test=LabelTest)
    cpdef void bind(self) except *
    @cython.locals(number=Py_ssize_t, test=LabelTest, wanted=Py_ssize_t, equal=bint)
    cpdef bint matches(self, Py_ssize_t row) except -1

cdef class SelectorMatcher:
    cdef list _terms

    @cython.locals(term=TermMatcher)
    cpdef void bind(self) except *
    @cython.locals(number=Py_ssize_t, term=TermMatcher)
    cpdef bint matches(self, Py_ssize_t row) except -1
