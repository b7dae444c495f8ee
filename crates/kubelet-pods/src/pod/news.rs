//! What becomes of the configured pods, for whoever follows them.

use api_types::core_v1::Pod;
use tokio::sync::broadcast;

/// How far somebody may fall behind before he has to begin anew; upstream's number.
const BACKLOG: usize = 100;

/// Something happened to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodNews {
    /// The pod of this uid has come, or it or its status is another than before.
    Changed(String),
    /// The node is no longer asked to run it.
    Removed { uid: String, namespace: String, name: String },
}

/// Tells what becomes of pods; it costs nothing while nobody follows.
pub(crate) struct Herald(broadcast::Sender<PodNews>);

impl Default for Herald {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl Herald {
    pub(crate) fn changed(&self, uid: &str) {
        self.tell(|| PodNews::Changed(uid.to_owned()));
    }

    pub(crate) fn removed(&self, pod: &Pod) {
        self.tell(|| PodNews::Removed {
            uid: pod.metadata.uid.clone(),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
        });
    }

    fn tell(&self, news: impl FnOnce() -> PodNews) {
        if self.0.receiver_count() > 0 {
            // The last one may have left in between.
            let _ = self.0.send(news());
        }
    }

    /// What happens from now on. Whoever falls too far behind is told so, and then goes on with what is newer.
    pub(crate) fn follow(&self) -> broadcast::Receiver<PodNews> {
        self.0.subscribe()
    }
}
