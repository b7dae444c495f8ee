//! The first hook: readiness waits until the caches are filled, though not for ever.

use std::sync::Arc;

use async_trait::async_trait;

use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// The hook `storage-readiness`.
pub(crate) fn hook() -> Arc<dyn PostStartHook> {
    Arc::new(StorageReadiness)
}

struct StorageReadiness;

#[async_trait]
impl PostStartHook for StorageReadiness {
    fn name(&self) -> &'static str {
        "storage-readiness"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let limit = cx.config().storage.initialization_timeout;
        if tokio::time::timeout(limit, cx.registry().ready()).await.is_err() {
            tracing::warn!(resources = ?cx.registry().not_ready(), "Storage readiness: caches are not filled yet, going on");
        }
        Ok(())
    }
}
