"""DynamicResources: a pod that claims devices runs only on nodes where its claims can be allocated.

`plugin` contains the plugin itself. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/, KEP-4381 (structured parameters),
KEP-4816 (alternatives), KEP-4815 (partitions), KEP-5055 (device taints), KEP-5075 (shared capacity), KEP-5004 (extended
resources), KEP-5007 (binding conditions).
"""
