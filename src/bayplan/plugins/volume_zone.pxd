cimport cython

from bayplan.framework.rule cimport FilterRule
from bayplan.state.node_matcher cimport LabelTest

cdef class ZoneTest:
    cdef LabelTest _test, _newer

    cpdef void bind(self) except *
    cpdef bint matches(self, Py_ssize_t row) except -1

cdef class VolumeZones(FilterRule):
    cdef object _plugin, _spec, _cluster, _topologies
    cdef list _labels, _tests
    cdef int _verdict

    @cython.locals(label=LabelTest, test=ZoneTest)
    cpdef void bind(self) except *
    @cython.locals(test=ZoneTest)
    cpdef bint refresh(self) except -1
    @cython.locals(labelled=bint, number=Py_ssize_t, label=LabelTest, test=ZoneTest)
    cpdef int filter(self, Py_ssize_t row) except -1
