//! `DefaultBinder`: writes the choice to the pod's `binding` subresource.

use std::sync::Arc;

use async_trait::async_trait;

use crate::framework::{Bind, Bound, BuildCx, Plugin, PluginError, Status};
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;
use crate::writer::ClusterWriter;

pub(super) const NAME: &str = "DefaultBinder";

struct DefaultBinder {
    writer: Arc<dyn ClusterWriter>,
}

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    Ok(Plugin::new(NAME).bind(Arc::new(DefaultBinder { writer: Arc::clone(&cx.writer) })).wakes_on(Vec::new()))
}

#[async_trait]
impl Bind for DefaultBinder {
    async fn bind(&self, pod: &PodInfo, node: &str) -> Result<Bound, Status> {
        match self.writer.bind(&pod.pod, node).await {
            Ok(()) => Ok(Bound::Done),
            Err(error) => Err(Status::error(error.to_string())),
        }
    }
}
