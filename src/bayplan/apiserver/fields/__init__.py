"""Field ownership: field sets, comparison of documents, server-side apply, managedFields."""
