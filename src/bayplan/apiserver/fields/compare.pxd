cimport cython

from bayplan.apiserver.fields.field_type cimport FieldType

cpdef str element_of(FieldType kind, object item)
@cython.locals(found=dict, inner=FieldType, below=dict, node=dict)
cpdef dict lists_with_empties(FieldType kind, object value)
cdef bint _has_empty_items(object value)
cpdef bint has_empties(object value)
cpdef dict whole(FieldType kind, object value)
@cython.locals(fields=dict, element=FieldType, inner=FieldType)
cdef dict _inside(FieldType kind, object value, dict children)
cpdef FieldType deduced(FieldType kind, object value)
cdef object _compare_entries(FieldType kind, object old, object new, tuple out)
@cython.locals(below=tuple, found=dict, target=dict)
cdef object _compare_child(str element, FieldType kind, object old, object new, tuple out)
@cython.locals(inner=FieldType, before=dict, after=dict)
cdef object _compare_items(FieldType kind, list old, list new, tuple out)
@cython.locals(children=dict, fields=dict, element=FieldType, inner=FieldType, field=FieldType)
cpdef dict fields_of(FieldType kind, object value)
