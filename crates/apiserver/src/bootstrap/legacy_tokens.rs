//! Since when the use of tokens from Secrets is noted: a date in a ConfigMap, written once.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_types::core_v1::ConfigMap;
use async_trait::async_trait;
use client::ClientError;
use component_helpers::legacy_tokens::{
    TRACKING_NAME as NAME, TRACKING_NAMESPACE as NAMESPACE, TRACKING_SINCE as SINCE, date, day,
};

use super::retry;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// How often the ConfigMap is looked at.
const PERIOD: Duration = Duration::from_secs(30 * 60);
/// How soon a failed look is repeated; the namespace may not be there yet.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The hook `start-legacy-token-tracking-controller`.
pub(super) struct LegacyTokenTracking;

#[async_trait]
impl PostStartHook for LegacyTokenTracking {
    fn name(&self) -> &'static str {
        "start-legacy-token-tracking-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let context = Arc::clone(cx);
        cx.tasks().spawn_cancellable("legacy-token-tracking", async move {
            let work = || ensure(&context);
            retry::repeat("Writing the date of token tracking", PERIOD, RETRY_PERIOD, work).await;
        });
        Ok(())
    }
}

async fn ensure(cx: &ApiCx) -> Result<(), ClientError> {
    let api = cx.loopback().namespaced::<ConfigMap>(NAMESPACE);
    let today = date(Time::from(cx.clock().wall()));
    match api.get_opt(NAME).await? {
        None => {
            let metadata = ObjectMeta { name: NAME.into(), namespace: NAMESPACE.into(), ..ObjectMeta::default() };
            let data = [(SINCE.to_owned(), today)].into();
            api.create(&ConfigMap { metadata, data, ..ConfigMap::default() }).await?;
        }
        Some(mut config) if config.data.get(SINCE).is_none_or(|since| day(since).is_none()) => {
            config.data.insert(SINCE.to_owned(), today);
            api.update(&config).await?;
        }
        Some(_) => {}
    }
    Ok(())
}
