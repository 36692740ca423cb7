"""The descheduler in virtual time: it evicts badly placed pods, and the scheduler places the pods that replace them."""

from bayplan.base.durations import MINUTE_NS

DEFAULT_INTERVAL_NS = 5 * MINUTE_NS
"""Time between two runs, as in the descheduler's own manifests (`--descheduling-interval`)."""
