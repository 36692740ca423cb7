# The memory layout of the store's events: see bayplan/objects/struct_layouts.pxd.

cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *kind, *new, *old, *resource_version, *type;
    } ChangeEventFields;
    """
    ctypedef class bayplan.cluster.store.ChangeEvent [object ChangeEventFields, check_size error]:
        cdef object kind, new, old, resource_version, type
