"""The cluster autoscaler in virtual time: node groups grow when pods wait, and shrink when nodes are not needed."""
