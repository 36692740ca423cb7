from bayplan.framework.rule cimport FilterRule

cdef class CountingRule(FilterRule):
    pass
