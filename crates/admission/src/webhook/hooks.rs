//! All webhooks that are configured, made ready once for each change of the configurations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration, Webhook};
use parking_lot::Mutex;

use super::hook::Source;
use super::{Hook, may_be_asked};
use crate::lookup::same;
use crate::manifests::of_type;
use crate::{Attributes, Context};

/// How long a request waits for the configurations to be known, as upstream.
const READY_WAIT: Duration = Duration::from_secs(10);

/// A kind that names webhooks.
pub(crate) trait Configuration: Kind + Object {
    /// The plugin that asks them.
    const PLUGIN: &'static str;

    /// Its webhooks, in their order.
    fn webhooks(&self) -> Vec<Webhook<'_>>;
}

impl Configuration for MutatingWebhookConfiguration {
    const PLUGIN: &'static str = "MutatingAdmissionWebhook";

    fn webhooks(&self) -> Vec<Webhook<'_>> {
        self.webhooks.iter().map(Webhook::from).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const PLUGIN: &'static str = "ValidatingAdmissionWebhook";

    fn webhooks(&self) -> Vec<Webhook<'_>> {
        self.webhooks.iter().map(Webhook::from).collect()
    }
}

/// The webhooks of one kind of configurations, by the names of these.
pub(crate) struct Hooks<T>(Mutex<Ready<T>>);

struct Ready<T> {
    /// What they were made of, of files and of the API: as long as the same is handed out, nothing has changed.
    of: [Vec<Arc<T>>; 2],
    hooks: Arc<[Hook]>,
}

impl<T> Default for Hooks<T> {
    fn default() -> Self {
        Self(Mutex::new(Ready { of: [Vec::new(), Vec::new()], hooks: Arc::from([]) }))
    }
}

impl<T: Configuration> Hooks<T> {
    /// Whether there may be a webhook to ask about a request.
    pub(crate) fn is_needed(cx: &Context, attributes: &Attributes) -> bool {
        (may_be_asked(attributes) && cx.lookup.has_any(T::TYPE.place()))
            || !cx.manifests.of_plugin(T::PLUGIN).is_empty()
    }

    /// The webhooks as they are now, those of files first; a request looks at them once.
    ///
    /// # Errors
    /// 403 as long as they are not known.
    pub(crate) async fn current(&self, cx: &Context, attributes: &Attributes) -> Result<Arc<[Hook]>, ApiError> {
        let filled = tokio::time::timeout(READY_WAIT, cx.lookup.list_filled::<T>("")).await;
        let Ok(Ok(of_api)) = filled else { return Err(attributes.forbidden("not yet ready to handle request")) };
        let mut now = [of_type::<T>(&cx.manifests.of_plugin(T::PLUGIN)), of_api];
        now.iter_mut().for_each(|all| all.sort_by(|one, other| one.meta().name.cmp(&other.meta().name)));
        let mut ready = self.0.lock();
        if !now.iter().zip(&ready.of).all(|(now, former)| same(now, former)) {
            let of =
                |source, all: &[Arc<T>]| -> Vec<Hook> { all.iter().flat_map(|own| hooks_of(&**own, source)).collect() };
            let [of_files, of_api] = &now;
            ready.hooks = of(Source::File, of_files).into_iter().chain(of(Source::Api, of_api)).collect();
            ready.of = now;
        }
        Ok(Arc::clone(&ready.hooks))
    }
}

fn hooks_of<T: Configuration>(configuration: &T, source: Source) -> Vec<Hook> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let hook = |own: Webhook<'_>| {
        let nth = seen.entry(own.name.to_owned()).and_modify(|nth| *nth += 1).or_default();
        Hook::new((&configuration.meta().name, source), &own, *nth)
    };
    configuration.webhooks().into_iter().map(hook).collect()
}
