from bayplan.objects.struct_layouts cimport Pod, PodSpec

cdef class PodAdmission:
    cdef public object _store, _classes, policies
    cdef public Py_ssize_t version
    cdef public dict _specs, _labelled
    cdef object __weakref__

    cpdef object admit(self, Pod pod)
