//! Controllers that create pods, and those that clean up after them. What the pod-creating ones share is here once:
//! owners and their pods, adoption, pod control, the template hash and the guard against stale caches.

pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod disruption;
pub(crate) mod job;
pub(crate) mod pod_gc;
pub(crate) mod replica_set;
pub(crate) mod stateful_set;
pub(crate) mod ttl_after_finished;

mod adoption;
#[cfg(test)]
pub(crate) mod fixtures;
mod owners;
mod pod_control;
mod pod_watch;
mod revision_data;
mod template_hash;
mod written;

pub(crate) use written::GATES as STALENESS_GATES;
