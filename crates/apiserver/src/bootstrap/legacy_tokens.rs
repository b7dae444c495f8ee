//! Since when the use of tokens from Secrets is noted: a date in a ConfigMap, written once.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_types::core_v1::ConfigMap;
use async_trait::async_trait;
use client::ClientError;

use super::retry;
use crate::cx::ApiCx;
use crate::hooks::PostStartHook;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const KEY: &str = "since";
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

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), String> {
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
    let today: String = Time::from(cx.clock().wall()).to_string().chars().take("2006-01-02".len()).collect();
    match api.get_opt(NAME).await? {
        None => {
            let metadata = ObjectMeta { name: NAME.into(), namespace: NAMESPACE.into(), ..ObjectMeta::default() };
            let data = [(KEY.to_owned(), today)].into();
            api.create(&ConfigMap { metadata, data, ..ConfigMap::default() }).await?;
        }
        Some(mut config) if !config.data.get(KEY).is_some_and(|date| is_date(date)) => {
            config.data.insert(KEY.to_owned(), today);
            api.update(&config).await?;
        }
        Some(_) => {}
    }
    Ok(())
}

/// Whether a text is a date such as `2026-01-31`.
fn is_date(text: &str) -> bool {
    let numbers: Vec<Option<u32>> = text.split('-').map(|part| part.parse().ok()).collect();
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [4, 2, 2]
        && matches!(numbers.as_slice(), [Some(_), Some(month), Some(day)] if (1..=12).contains(month) && (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_recognized() {
        for (text, expected) in [("2026-01-31", true), ("2026-13-01", false), ("2026-1-1", false), ("", false)] {
            assert_eq!(is_date(text), expected, "{text}");
        }
    }
}
