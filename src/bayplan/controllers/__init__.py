"""Controllers, one file each: every controller reconciles the objects of one kind with their spec.

All are level-triggered: `Controller.reconcile` reads the current state of the store and may be called at any time, any
number of times. Change events only select the keys to reconcile. `bayplan.controllers.manager` calls the controllers in
one fixed order.

Controllers read an `ObjectStore` and write through a `bayplan.controllers.writer.Writer`, so that simulations and
servers run the same controllers. They follow kube-controller-manager v1.36.3 (pkg/controller), without expectations and
slow starts, since no cache can be stale. Adoption and release by selector run on servers only (`adoption`). In a
simulation, the owner reference alone decides ownership; only StatefulSets adopt, because they need specific names.
"""
