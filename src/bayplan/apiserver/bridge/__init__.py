"""The bridge (docs/adr/0009): typed objects in sync with the API's store, and controllers and a kubelet that use
them.
"""
