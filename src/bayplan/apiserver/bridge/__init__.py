"""The bridge (docs/adr/0009): typed objects kept in sync with the API's documents, and controllers and kubelet over them."""
