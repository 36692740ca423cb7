from bayplan.objects.struct_layouts cimport Pod

cpdef object pod_terms(Pod pod)
