cdef class ObjectCatalog:
    cdef public dict _objects, _versions, _written
    cdef public list journal
    cdef public Py_ssize_t writes
