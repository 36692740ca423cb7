"""Controllers: each makes what is match what one kind of object asks for; one file a controller.

All are level-triggered: `Controller.reconcile` looks at the store as it is now and may be called at any time, any
number of times. Change events only say where to look. `bayplan.controllers.manager` calls them, in one fixed
order.

They follow kube-controller-manager v1.36.3 (pkg/controller), without what a virtual cluster has no use for:
expectations and slow starts (no cache lags behind), retries (no write fails), events for people to read, adoption and
release of pods by selector (ownership is the owner reference; only StatefulSets adopt, for they need the very names).
"""
