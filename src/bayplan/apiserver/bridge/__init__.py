"""The bridge (docs/adr/0009): typed objects in sync with the API's store, and the controllers and the kubelet that use
them.
"""
