"""Field ownership: field sets, comparison of objects, merging, server-side apply and managedFields."""
