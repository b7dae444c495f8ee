//! Transport, kubeconfig, Api<T>, informers, work queue, leases, events.
