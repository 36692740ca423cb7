"""Controllers: reconcile the objects of one kind with their spec; one file per controller.

All are level-triggered: `Controller.reconcile` reads the current state of the store and may be called at any time, any number of
times. Change events only determine where to look. `bayplan.controllers.manager` calls them, in one fixed order.

They read an `ObjectStore` and write through a `bayplan.controllers.writer.Writer`, so that simulations and servers run the same
controllers. They follow kube-controller-manager v1.36.3 (pkg/controller), without expectations and slow starts, since no cache can
be stale. Adoption and release by selector run on servers only (`adoption`); in a simulation ownership is the owner reference, and
only StatefulSets adopt, because they need specific names.
"""
