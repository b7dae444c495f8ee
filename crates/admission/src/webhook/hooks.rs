//! All webhooks that are configured, made ready once for each change of the configurations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration, Webhook};
use parking_lot::Mutex;

use super::Hook;
use crate::{Attributes, Context};

/// How long a request waits for the configurations to be known, as upstream.
const READY_WAIT: Duration = Duration::from_secs(10);

/// A kind that names webhooks.
pub(crate) trait Configuration: Kind + Object {
    /// Its webhooks, in their order.
    fn webhooks(&self) -> Vec<Webhook<'_>>;
}

impl Configuration for MutatingWebhookConfiguration {
    fn webhooks(&self) -> Vec<Webhook<'_>> {
        self.webhooks.iter().map(Webhook::from).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn webhooks(&self) -> Vec<Webhook<'_>> {
        self.webhooks.iter().map(Webhook::from).collect()
    }
}

/// The webhooks of one kind of configurations, by the names of these.
pub(crate) struct Hooks<T>(Mutex<Ready<T>>);

struct Ready<T> {
    /// What they were made of: as long as the cache hands out the same, nothing has changed.
    of: Vec<Arc<T>>,
    hooks: Arc<[Hook]>,
}

impl<T> Default for Hooks<T> {
    fn default() -> Self {
        Self(Mutex::new(Ready { of: Vec::new(), hooks: Arc::from([]) }))
    }
}

impl<T: Configuration> Hooks<T> {
    /// The webhooks as they are now; a request looks at them once.
    ///
    /// # Errors
    /// 403 as long as they are not known.
    pub(crate) async fn current(&self, cx: &Context, attributes: &Attributes) -> Result<Arc<[Hook]>, ApiError> {
        let filled = tokio::time::timeout(READY_WAIT, cx.lookup.list_filled::<T>("")).await;
        let Ok(Ok(mut now)) = filled else { return Err(attributes.forbidden("not yet ready to handle request")) };
        now.sort_by(|one, other| one.meta().name.cmp(&other.meta().name));
        let mut ready = self.0.lock();
        let same = now.len() == ready.of.len() && now.iter().zip(&ready.of).all(|(one, other)| Arc::ptr_eq(one, other));
        if !same {
            ready.hooks = now.iter().flat_map(|own| hooks_of(&**own)).collect();
            ready.of = now;
        }
        Ok(Arc::clone(&ready.hooks))
    }
}

fn hooks_of<T: Configuration>(configuration: &T) -> Vec<Hook> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let hook = |own: Webhook<'_>| {
        let nth = seen.entry(own.name.to_owned()).and_modify(|nth| *nth += 1).or_default();
        Hook::new(&configuration.meta().name, &own, *nth)
    };
    configuration.webhooks().into_iter().map(hook).collect()
}
