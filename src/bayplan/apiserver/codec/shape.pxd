cimport cython

cdef class Unknown:
    cdef public bint found

cdef class Reader:
    cpdef object read(self, object value, Unknown unknown=*)

cdef class ScalarReader(Reader):
    cdef object _function

cdef class ListReader(Reader):
    cdef Reader _item
    cdef object _go_type, _zero
    @cython.locals(found=list, reader=Reader)
    cpdef object read(self, object value, Unknown unknown=*)

cdef class MapReader(Reader):
    cdef Reader _item
    cdef object _exact, _go_type, _zero
    @cython.locals(out=dict, reader=Reader)
    cpdef object read(self, object value, Unknown unknown=*)

cdef class FieldShape:
    cdef public Reader reader
    cdef public object exact, empty, inner
    cdef public bint nil_when_empty, omit_zero
    cdef public tuple containers
    cdef public str path, struct

cdef class Shape(Reader):
    cdef readonly str type_name, name, go_type
    cdef readonly dict fields, shown
    cdef object __weakref__
    @cython.locals(out=dict, empties=dict, fields=dict, field=FieldShape)
    cpdef object read(self, object value, Unknown unknown=*)
