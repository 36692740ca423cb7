from bayplan.objects.struct_layouts cimport Pod

cpdef bint affects_decisions(object old, object new) except -1

cdef bint _pod_affects_decisions(Pod old, Pod new) except -1
