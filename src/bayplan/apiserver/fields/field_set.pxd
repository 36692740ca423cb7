cimport cython

cpdef bint is_member(dict node) except -1
cpdef dict make_node(bint member, dict children)
cpdef dict children_of(dict node)
@cython.locals(out=dict, node=dict, other=dict)
cpdef dict union(dict left, dict right)
cdef dict _union_nodes(dict left, dict right)
@cython.locals(out=dict, node=dict, other=dict, kept=dict, left_over=dict)
cpdef dict difference(dict left, dict right)
@cython.locals(out=dict, node=dict, other=dict, kept=dict)
cpdef dict without(dict left, dict right)
@cython.locals(out=dict, node=dict, other=dict, kept=dict)
cpdef dict intersection(dict left, dict right)
