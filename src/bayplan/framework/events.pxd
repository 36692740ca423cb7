from bayplan.objects.struct_layouts cimport Pod

cpdef list pod_update_events(Pod old, Pod new, object gates=*)
