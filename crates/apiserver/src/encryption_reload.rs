//! Following the file that says how values lie in the store.

use std::sync::Arc;

use async_trait::async_trait;
use encryption::Live;

use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

struct EncryptionReload(Arc<Live>);

/// The hook, where changes of the file are taken.
pub(crate) fn hook(live: Arc<Live>) -> Option<Arc<dyn PostStartHook>> {
    live.follows().then(|| Arc::new(EncryptionReload(live)) as _)
}

#[async_trait]
impl PostStartHook for EncryptionReload {
    fn name(&self) -> &'static str {
        "start-encryption-provider-config-automatic-reload"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        cx.tasks().spawn_cancellable("encryption-reload", Arc::clone(&self.0).follow());
        Ok(())
    }
}
