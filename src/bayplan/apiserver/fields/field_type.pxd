cdef class FieldType:
    cdef public object merge, key_defaults
    cdef public dict fields
    cdef public FieldType element, content
    cdef public tuple keys
    cdef public bint is_list, is_map
    cdef public str json_type
    cdef object __weakref__
    cpdef FieldType child(self, name)
