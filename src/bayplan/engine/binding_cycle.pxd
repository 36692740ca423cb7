cdef class BindingCycle:
    cdef public dict waiting, pending
    cdef public object _scheduler
    cdef public bint _nominates_expected

    cpdef object begin(self, object binding, object now_ns)
    cdef object _reserve_and_permit(self, object binding, object now_ns)
    cdef void _activate_pods(self, object cycle_state, object now_ns) except *
    cdef object _expect(self, object binding)
    cdef object _bind(self, object binding, object now_ns)
    cpdef list succeeded(self, object key, object pod, object now_ns)

cdef object _run_bind_plugins(object profile, object cycle_state, object pod, object node_name)
