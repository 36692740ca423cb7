cimport cython

from bayplan.state.row_log cimport RowLog

cdef class Bookmark:
    cdef RowLog log
    cdef Py_ssize_t position

cdef class LogReader:
    cdef list _bookmarks
    cdef public Py_ssize_t[::1] rows

    @cython.locals(mark=Bookmark, added=Py_ssize_t)
    cpdef bint is_current(self) except -1
    @cython.locals(mark=Bookmark)
    cpdef void skip(self) except *
    @cython.locals(mark=Bookmark, missed=Py_ssize_t, reached=bint, found=Py_ssize_t, rows=Py_ssize_t[::1])
    cpdef Py_ssize_t take(self, Py_ssize_t limit) except -2
