"""Questions about a cluster as it is now: how many more, which nodes, what if, when. Pure: no input, output or real time.

A question takes a `QuestionCluster`, tries things in trials that are undone at their end, and returns typed rows. Where the
cluster comes from is the business of the callers: the command line, notebooks and the HTTP API ask the same functions.
"""
