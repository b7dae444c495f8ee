//! `PrioritySort`: higher priority first, then whoever waits longer.

use std::sync::Arc;

use crate::framework::{BuildCx, Plugin, PluginError, QueueSort};
use crate::plugin_args::PluginArgs;
use crate::queued_pod::{QueuedPod, SortKey};

pub(super) const NAME: &str = "PrioritySort";

struct PrioritySort;

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    Ok(Plugin::new(NAME).queue_sort(Arc::new(PrioritySort)).wakes_on(Vec::new()))
}

impl QueueSort for PrioritySort {
    fn key(&self, pod: &QueuedPod) -> SortKey {
        SortKey { importance: -i64::from(pod.info.priority), since: pod.timestamp }
    }
}
