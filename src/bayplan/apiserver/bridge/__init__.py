"""The bridge (docs/adr/0009): typed objects kept in step with the API's documents, and controllers and kubelet over them."""
