from bayplan.objects.struct_layouts cimport Pod

cpdef bint _is_running(Pod victim) except -1
cpdef object _uid_of(Pod pod)
