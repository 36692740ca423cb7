"""The cluster autoscaler in virtual time: node groups that grow for waiting pods and shrink when nodes are unneeded."""
