//! ImagePolicyWebhook: a webhook says whether the images of a pod may run.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#imagepolicywebhook>

mod config;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::json;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::Pod;
use api_types::imagepolicy_v1alpha1::{
    GROUP, ImageReview, ImageReviewContainerSpec, ImageReviewSpec, ImageReviewStatus, VERSION,
};
use async_trait::async_trait;
use base::Expiring;
use bytes::Bytes;
use client::{ClientError, Webhook};
use parking_lot::Mutex;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};
pub use config::ImagePolicyConfig;

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "ImagePolicyWebhook",
    enabled_by_default: false,
    passes: Passes::Validating,
    reads: &[],
    configuration: Some(|stated| Ok(Arc::new(ImagePolicyConfig::read(stated.value)?))),
    build: |settings| {
        let config: Arc<ImagePolicyConfig> = settings.configured.get().unwrap_or_default();
        Box::new(ImagePolicyWebhook::new(&config))
    },
};

const KIND: &str = "ImageReview";
/// Answers remembered, as upstream.
const MAX_ANSWERS: usize = 1024;
/// Annotations of pods that the webhook hears of have this in their names.
const FOR_WEBHOOK: &str = ".image-policy.k8s.io/";
/// In front of the names of what the audit log hears.
const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
const FAILED_OPEN: &str = "failed-open";
/// Prefix of the names of the configuration's types.
const PACKAGE: &str = "io.k8s.kubernetes.plugin.pkg.admission.imagepolicy";

/// Who is asked about images.
#[async_trait]
pub trait ImageReviewer: Send + Sync {
    /// Puts a question in JSON; gives the body of the answer, which is of a bounded size, or why there is none.
    async fn review(&self, question: Bytes) -> Result<Bytes, String>;
}

#[async_trait]
impl ImageReviewer for Webhook {
    async fn review(&self, question: Bytes) -> Result<Bytes, String> {
        self.ask(question, |_, _| {}).await.map_err(|error| match &error {
            ClientError::Api(answer) => format!("Error contacting webhook: {}", answer.code),
            other => other.to_string(),
        })
    }
}

struct ImagePolicyWebhook {
    /// By the JSON of what was asked.
    answers: Mutex<Expiring<String, Arc<ImageReviewStatus>>>,
    allow_ttl: Duration,
    deny_ttl: Duration,
    default_allow: bool,
}

/// What is to be asked of a pod: all images, or only those of the containers that a request may add.
fn question(attributes: &Attributes, pod: &Pod) -> ImageReviewSpec {
    let spec = &pod.spec;
    let images: Vec<&String> = if attributes.subresource.is_empty() {
        spec.containers.iter().chain(&spec.init_containers).map(|container| &container.image).collect()
    } else {
        spec.ephemeral_containers.iter().map(|container| &container.ephemeral_container_common.image).collect()
    };
    let told = pod.metadata.annotations.iter().filter(|(name, _)| name.contains(FOR_WEBHOOK));
    ImageReviewSpec {
        containers: images.into_iter().map(|image| ImageReviewContainerSpec { image: image.clone() }).collect(),
        annotations: told.map(|(name, value)| (name.clone(), value.clone())).collect(),
        namespace: attributes.namespace.clone(),
    }
}

impl ImagePolicyWebhook {
    fn new(config: &ImagePolicyConfig) -> Self {
        Self {
            answers: Mutex::new(Expiring::new(MAX_ANSWERS)),
            allow_ttl: config.allow_ttl,
            deny_ttl: config.deny_ttl,
            default_allow: config.default_allow,
        }
    }

    /// What is said of the images, now or a little ago.
    async fn answer(&self, cx: &Context, spec: ImageReviewSpec) -> Result<Arc<ImageReviewStatus>, String> {
        let key = json::encode(&spec);
        let known = self.answers.lock().get(&key, cx.clock.monotonic());
        if let Some(answer) = known {
            return Ok(answer);
        }
        let reviewer = cx.callers.images.as_ref().ok_or("no webhook is configured")?;
        let status = Arc::new(ask(&**reviewer, spec).await?);
        let ttl = if status.allowed { self.allow_ttl } else { self.deny_ttl };
        if !ttl.is_zero() {
            let now = cx.clock.monotonic();
            self.answers.lock().insert(key, Arc::clone(&status), now + ttl, now);
        }
        Ok(status)
    }
}

async fn ask(reviewer: &dyn ImageReviewer, spec: ImageReviewSpec) -> Result<ImageReviewStatus, String> {
    let api_version = format!("{GROUP}/{VERSION}");
    let review = ImageReview { spec, ..ImageReview::default() };
    let body = reviewer.review(json::encode_typed(KIND, &api_version, &review).into()).await?;
    let mut review = ImageReview::default();
    let decoded = json::decode(&body, &mut review).map_err(|error| error.to_string())?;
    let own = (decoded.type_meta.api_version.as_str(), decoded.type_meta.kind.as_str());
    if own != (api_version.as_str(), KIND) {
        return Err(format!("expected {KIND} of {api_version}, got {:?} of {:?}", own.1, own.0));
    }
    Ok(review.status)
}

#[async_trait]
impl Plugin for ImagePolicyWebhook {
    fn handles(&self, attributes: &Attributes) -> bool {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        written && (attributes.is("", "pods") || attributes.is_sub("", "pods", "ephemeralcontainers"))
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_ref::<Pod>()) else { return Ok(()) };
        let status = match self.answer(cx, question(attributes, pod)).await {
            Ok(status) => status,
            Err(why) if self.default_allow => {
                tracing::warn!(%why, "The webhook of image policy could not be asked, the images may run");
                attributes.annotations.add(format!("{AUDIT_PREFIX}{FAILED_OPEN}"), "true");
                return Ok(());
            }
            Err(why) => return Err(attributes.forbidden(why)),
        };
        for (key, value) in &status.audit_annotations {
            attributes.annotations.add(format!("{AUDIT_PREFIX}{key}"), value);
        }
        if status.allowed {
            return Ok(());
        }
        let reason = &status.reason;
        if reason.is_empty() {
            return Err(attributes.forbidden("one or more images rejected by webhook backend"));
        }
        Err(attributes.forbidden(format_args!("image policy webhook backend denied one or more images: {reason}")))
    }
}
