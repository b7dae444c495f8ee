//! What the controllers can be told by flags, with upstream's defaults. The component's options fill it in.

/// Settings of the controllers, handed to each when it is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `--concurrent-deployment-syncs`.
    pub deployment_syncs: usize,
    /// `--concurrent-replicaset-syncs`.
    pub replica_set_syncs: usize,
    /// `--concurrent-daemonset-syncs`, for each of the two queues.
    pub daemon_set_syncs: usize,
    /// `--concurrent-job-syncs`, for each of the two queues.
    pub job_syncs: usize,
    /// `--concurrent-ttl-after-finished-syncs`.
    pub ttl_after_finished_syncs: usize,
    /// `--terminated-pod-gc-threshold`: how many ended pods may stay; 0 or less for any number.
    pub terminated_pod_gc_threshold: i32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deployment_syncs: 5,
            replica_set_syncs: 5,
            daemon_set_syncs: 2,
            job_syncs: 5,
            ttl_after_finished_syncs: 5,
            terminated_pod_gc_threshold: 12_500,
        }
    }
}
