//! How many objects there are of each resource, how large the store is, and whether caches are like it: asked from time to
//! time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::cx::ApiCx;
use crate::gates;
use crate::hooks::{HookError, PostStartHook};

/// How often caches are compared with the store, at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// What stands for a count that could not be had.
const UNKNOWN: f64 = -1.0;

/// The hook `storage-object-count-tracker-hook`.
pub(crate) fn hook() -> Arc<dyn PostStartHook> {
    Arc::new(ObjectCounts)
}

struct ObjectCounts;

#[async_trait]
impl PostStartHook for ObjectCounts {
    fn name(&self) -> &'static str {
        "storage-object-count-tracker-hook"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let (counting, measuring, storage) = (Arc::clone(cx), Arc::clone(cx), &cx.config().storage);
        if let Some(interval) = on(storage.count_interval) {
            cx.tasks().spawn_cancellable("object-counts", async move {
                loop {
                    count(&counting).await;
                    rest(&counting, interval).await;
                }
            });
        }
        if let Some(interval) = on(storage.size_interval) {
            cx.tasks().spawn_cancellable("store-size", async move {
                loop {
                    measure(&measuring).await;
                    rest(&measuring, interval).await;
                }
            });
        }
        if cx.lifecycle.gates().enabled(gates::DETECT_INCONSISTENCY) {
            let checking = Arc::clone(cx);
            cx.tasks().spawn_cancellable("cache-checks", async move {
                loop {
                    tokio::time::sleep(CHECK_INTERVAL.mul_f64(1.0 + checking.rng().unit() / 2.0)).await;
                    checking.registry.check_caches().await;
                }
            });
        }
        Ok(())
    }
}

/// Zero is for never.
fn on(interval: Duration) -> Option<Duration> {
    (!interval.is_zero()).then_some(interval)
}

async fn rest(cx: &ApiCx, interval: Duration) {
    let jitter = 1.0 + cx.rng().unit();
    tokio::time::sleep(interval.mul_f64(jitter)).await;
}

async fn measure(cx: &ApiCx) {
    for (index, store) in std::iter::once(cx.backend()).chain(cx.overrides.iter().map(|own| &own.backend)).enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        if let Ok(size) = store.size_bytes().await {
            cx.metrics.storage_size.with(&[&format!("etcd-{index}")]).set(size as f64);
        }
    }
}

async fn count(cx: &ApiCx) {
    for resource in cx.registry.resources() {
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        let objects = resource.count().await.map_or(UNKNOWN, |count| count as f64);
        let info = resource.info();
        cx.metrics.objects.with(&[info.group, info.resource]).set(objects);
        cx.metrics.old_objects.with(&[&resource.group_resource().to_string()]).set(objects);
    }
}
