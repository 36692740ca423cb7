"""The descheduler in virtual time: it evicts pods that are badly placed by now, and the scheduler places their successors."""
