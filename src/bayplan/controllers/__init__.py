"""Controllers: each makes what is match what one kind of object asks for; one file a controller.

All are level-triggered: `Controller.reconcile` looks at the store as it is now and may be called at any time, any
number of times. Change events only say where to look. `bayplan.controllers.manager` calls them, in one fixed
order.

They read an `ObjectStore` and write through a `bayplan.controllers.writer.Writer`, so that simulations and servers run the same
ones. They follow kube-controller-manager v1.36.3 (pkg/controller), without expectations and slow starts, since no cache lags
behind. Adoption and release by selector run on servers only (`adoption`); in a simulation ownership is the owner reference, and
only StatefulSets adopt, for they need the very names.
"""
