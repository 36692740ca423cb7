cimport cython

from bayplan.engine.plan cimport Plan
from bayplan.framework.profile cimport Profile
from bayplan.objects.struct_layouts cimport ObjectMeta, Pod

cdef class PlanCache:
    cdef readonly Py_ssize_t adapted
    cdef dict _plans
    cdef readonly object results
    cdef object _state, _budget_bytes, _probation, _remembered, _kinds, _encode

    @cython.locals(signature=bytes, plan=Plan, plugin=object)
    cpdef Plan plan_for(self, Profile profile, Pod pod)

@cython.locals(metadata=ObjectMeta)
cdef tuple _identity(Profile profile, Pod pod)
