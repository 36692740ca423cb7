from bayplan.objects.struct_layouts cimport Pod

cpdef object pod_volumes(Pod pod, bint shared=*)
