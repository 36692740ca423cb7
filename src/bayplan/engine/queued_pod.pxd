cimport cython

from bayplan.objects.struct_layouts cimport ObjectMeta, Pod

@cython.locals(pod=Pod)
cpdef object priority_sort(object queued)

@cython.locals(metadata=ObjectMeta)
cpdef object key_of(Pod pod)

@cython.locals(metadata=ObjectMeta)
cpdef object uid_of(Pod pod)
