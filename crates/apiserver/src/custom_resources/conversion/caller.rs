//! The way to the webhook of a definition: by its URL, or to a ready endpoint of its Service.

use std::sync::Arc;
use std::time::Duration;

use admission::webhook::{Address, CallError, Target};
use api_machinery::value::Value;
use api_types::apiextensions_v1::constants::conversion_strategy_type;
use api_types::apiextensions_v1::{CustomResourceDefinition, WebhookClientConfig};
use base::{SharedClock, SharedRng};
use bytes::Bytes;

use super::review::{AnswerError, ReviewVersion};
use crate::cx::ApiCx;
use crate::metrics::conversions::{ConversionMetrics, Failure};

/// How long a conversion may take, as upstream.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why nobody answered, or not as asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("no supported conversion review versions")]
    NoVersion,
    #[error("the webhook has no address")]
    NoAddress,
    #[error("{0}")]
    Call(String),
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl From<CallError> for AskError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Call { text, .. } | CallError::Client(text) => Self::Call(text),
        }
    }
}

impl AskError {
    fn kind(&self) -> Failure {
        if matches!(self, Self::Answer(_)) { Failure::MalformedResponse } else { Failure::Call }
    }
}

/// The webhook of a definition.
pub(in crate::custom_resources) struct Caller {
    definition: String,
    target: Option<Target>,
    version: Option<ReviewVersion>,
    webhooks: Arc<dyn admission::webhook::Caller>,
    metrics: ConversionMetrics,
    clock: SharedClock,
    rng: SharedRng,
}

impl Caller {
    /// Nothing where a definition has no webhook.
    pub(in crate::custom_resources) fn of(cx: &ApiCx, definition: &CustomResourceDefinition) -> Option<Arc<Self>> {
        let conversion = definition.spec.conversion.as_ref()?;
        if conversion.strategy != conversion_strategy_type::WEBHOOK {
            return None;
        }
        let webhook = conversion.webhook.as_ref()?;
        Some(Arc::new(Self {
            definition: definition.metadata.name.clone(),
            target: webhook.client_config.as_ref().and_then(target),
            version: ReviewVersion::of(&webhook.conversion_review_versions),
            webhooks: Arc::clone(&cx.conversion_webhooks),
            metrics: cx.metrics.conversions.clone(),
            clock: Arc::clone(cx.clock()),
            rng: Arc::clone(cx.rng()),
        }))
    }

    pub(super) fn succeeded(&self) {
        self.metrics.succeeded();
    }

    pub(super) fn note(&self, failure: Failure) {
        self.metrics.failed(failure);
    }

    /// The objects in the wanted version, as the webhook has them.
    pub(super) async fn ask(&self, objects: Vec<Value>, (from, to): (&str, &str)) -> Result<Vec<Value>, AskError> {
        let began = self.clock.monotonic();
        let answered = self.converse(objects, to).await;
        let took = self.clock.monotonic() - began;
        self.metrics.took(&self.definition, (from, to), answered.is_ok(), took);
        self.metrics.answered(answered.as_ref().err().map(AskError::kind), took);
        if let Err(error) = &answered {
            self.note(error.kind());
        }
        answered
    }

    async fn converse(&self, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, AskError> {
        let version = self.version.ok_or(AskError::NoVersion)?;
        let target = self.target.as_ref().ok_or(AskError::NoAddress)?;
        let uid = self.rng.uuid();
        let question = Bytes::from(version.question(&uid, to, objects).to_string());
        let answer = self.webhooks.call(target, question, TIMEOUT).await?;
        Ok(version.answer(&answer, &uid)?)
    }
}

fn target(config: &WebhookClientConfig) -> Option<Target> {
    let address = match (&config.url, &config.service) {
        (Some(url), _) => Address::Url(url.clone()),
        (None, Some(own)) => Address::of_service(&own.namespace, &own.name, own.port, own.path.as_deref()),
        (None, None) => return None,
    };
    // A bundle of nothing but spaces is none.
    let is_blank = config.ca_bundle.iter().all(u8::is_ascii_whitespace);
    let ca_bundle = if is_blank { Vec::new() } else { config.ca_bundle.to_vec() };
    Some(Target { address, ca_bundle })
}
