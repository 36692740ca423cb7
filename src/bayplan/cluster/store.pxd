cimport cython

from bayplan.objects.struct_layouts cimport ObjectMeta, Pod

cdef class ObjectStore:
    cdef public dict pods, nodes, _tables, _pods_by_node, _pods_by_owner, _dependents
    cdef public object resource_version
    cdef public list _journal, _uids
    cdef public object _uid_stream
    cdef object __weakref__

    cpdef object get(self, object kind, object key)
    @cython.locals(metadata=ObjectMeta, table=dict)
    cpdef object add(self, object new, object now_ns)
    @cython.locals(metadata=ObjectMeta, table=dict)
    cpdef object update(self, object new)
    @cython.locals(table=dict)
    cpdef object remove(self, object kind, object key)
    cpdef object new_uid(self)
    cpdef list journal(self)
    cpdef list take_journal(self)
    cdef void _move(self, object key, Pod old, Pod new) except *
    cdef void _leave_node(self, object key, object node_name) except *

cpdef object object_key(ObjectMeta metadata)

cdef str _uid_of(str digits)
