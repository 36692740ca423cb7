"""The descheduler in virtual time: it evicts badly placed pods, and the scheduler places the pods that replace them."""
