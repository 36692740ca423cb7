"""Who owns which field: sets of fields, what differs between two documents, server-side apply, managedFields."""
