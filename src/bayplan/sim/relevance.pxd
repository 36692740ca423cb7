from bayplan.objects.struct_layouts cimport Pod

cpdef bint makes_a_difference(object old, object new) except -1

cdef bint _pod_makes_a_difference(Pod old, Pod new) except -1
