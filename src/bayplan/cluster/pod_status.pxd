cimport cython

from bayplan.objects.struct_layouts cimport Pod, PodCondition, PodStatus

@cython.locals(status=PodStatus, condition=PodCondition, others=tuple, conditions=tuple, ready=bint)
cdef object _running_status(Pod pod, object timestamp)

@cython.locals(status=PodStatus, condition=PodCondition)
cdef object _ended_status(Pod pod, object timestamp, object exit_code)
