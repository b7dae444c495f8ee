//! What is noted of one request, by everybody on its road.

use std::sync::Arc;

use api_machinery::json;
use api_machinery::meta::{ObjectMeta, Status};
use api_machinery::time::MicroTime;
use api_types::audit_v1::{AuthenticationMetadata, Event};
use api_types::authentication_v1::UserInfo;
use base::SharedClock;
use parking_lot::Mutex;

use crate::delivery::Delivery;
use crate::event::{self, Origin, Stage, Target};
use crate::metrics::AuditMetrics;
use crate::policy::{Asked, Policy, RequestAuditConfig};

/// A request that could not be told of, where that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to store audit event")]
pub struct NotStored;

/// What decides about events and takes them.
pub struct Auditor {
    policy: Policy,
    delivery: Delivery,
    metrics: AuditMetrics,
    clock: SharedClock,
}

impl Auditor {
    /// Tells what `policy` wants by `delivery`.
    #[must_use]
    pub fn new(policy: Policy, delivery: Delivery, metrics: AuditMetrics, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { policy, delivery, metrics, clock })
    }

    /// The context of a request that has just come.
    #[must_use]
    pub fn request(self: &Arc<Self>, origin: &Origin, target: Target) -> Context {
        let received = MicroTime::from(self.clock.wall());
        let mut event = event::begin(origin, &target);
        event.request_received_timestamp = received;
        let notes = Notes { event, target, config: None, is_over: false };
        Context(Some(Arc::new(Record { auditor: Arc::clone(self), notes: Mutex::new(notes) })))
    }
}

/// What is noted of a request; nothing where nobody listens. Clones share it.
#[derive(Clone, Default)]
pub struct Context(Option<Arc<Record>>);

struct Record {
    auditor: Arc<Auditor>,
    notes: Mutex<Notes>,
}

struct Notes {
    event: Event,
    target: Target,
    /// Nothing until the policy was asked, and where it wants nothing.
    config: Option<RequestAuditConfig>,
    is_over: bool,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.0.is_some() { "Context(listened to)" } else { "Context" })
    }
}

impl Context {
    /// The context of requests that nobody wants to hear of.
    pub const UNHEARD: Self = Self(None);

    /// It is known who sent the request, and what authentication had to say: the policy is asked.
    ///
    /// # Errors
    /// When that the request came could not be told, and it must be.
    pub async fn identified(&self, user: &UserInfo, annotations: Vec<(String, String)>) -> Result<(), NotStored> {
        let Some(record) = &self.0 else { return Ok(()) };
        record.ask_policy(user);
        for (key, value) in annotations {
            self.annotate(&key, &value);
        }
        let received = record.notes.lock().event.request_received_timestamp;
        let was_told = record.tell(Stage::RequestReceived, received).await;
        if !was_told && record.auditor.delivery.is_strict() {
            record.auditor.metrics.rejected.with(&[]).inc();
            return Err(NotStored);
        }
        Ok(())
    }

    /// Notes something under a key of its own. What was noted first stays.
    pub fn annotate(&self, key: &str, value: &str) {
        self.note(|event| match event.annotations.get(key) {
            None => drop(event.annotations.insert(key.to_owned(), value.to_owned())),
            Some(present) if present == value => {}
            Some(present) => {
                tracing::warn!(key, present, value, "Failed to set annotations because it has been set");
            }
        });
    }

    /// Notes on whose behalf the request runs, and the constrained verb that allowed it, if one did.
    pub fn impersonated(&self, user: &UserInfo, constraint: &str) {
        self.note(|event| {
            event.impersonated_user = Some(user.clone());
            if !constraint.is_empty() {
                let impersonation_constraint = constraint.to_owned();
                event.authentication_metadata = Some(AuthenticationMetadata { impersonation_constraint });
            }
        });
    }

    /// Notes what the path does not say of the object.
    pub fn about(&self, meta: &ObjectMeta) {
        self.note(|event| {
            let Some(object) = &mut event.object_ref else { return };
            for (noted, own) in [
                (&mut object.name, &meta.name),
                (&mut object.namespace, &meta.namespace),
                (&mut object.uid, &meta.uid),
                (&mut object.resource_version, &meta.resource_version),
            ] {
                if noted.is_empty() {
                    noted.clone_from(own);
                }
            }
        });
    }

    /// Notes an answer that is no object.
    pub fn answered(&self, status: Status) {
        self.note(|event| event.response_status = Some(status));
    }

    /// The sender could not be told, or the request not be read so far: one event, which is all.
    pub async fn refused(&self, code: u16, message: String) {
        let Some(record) = &self.0 else { return };
        record.ask_policy(&UserInfo::default());
        let status = Status { code: i32::from(code), status: "Failure".into(), message, ..Status::default() };
        self.answered(status);
        record.tell_now(Stage::ResponseStarted).await;
        record.notes.lock().is_over = true;
    }

    /// The head of an answer that lasts was made.
    pub async fn started(&self, code: u16) {
        let Some(record) = &self.0 else { return };
        self.sending(code);
        record.tell_now(Stage::ResponseStarted).await;
    }

    /// The answer was made, all of it.
    pub async fn complete(&self, code: u16) {
        let Some(record) = &self.0 else { return };
        if record.end(Some(code)) {
            record.tell_now(Stage::ResponseComplete).await;
        }
    }

    /// An answer is made, and goes on being sent.
    pub fn sending(&self, code: u16) {
        if let Some(record) = &self.0 {
            record.notes.lock().code(code);
        }
    }

    /// An answer that was being sent has ended.
    pub fn ended(&self) {
        let Some(record) = &self.0 else { return };
        if record.end(None)
            && let Some(text) = record.line(Stage::ResponseComplete, None)
        {
            record.auditor.delivery.post(text);
        }
    }

    /// The server gave up on the request.
    pub async fn panicked(&self) {
        let Some(record) = &self.0 else { return };
        self.answered(Status {
            code: 500,
            status: "Failure".into(),
            reason: "InternalError".into(),
            message: "APIServer panic'd".into(),
            ..Status::default()
        });
        if record.end(Some(500)) {
            record.tell_now(Stage::Panic).await;
        }
    }

    fn note(&self, change: impl FnOnce(&mut Event)) {
        if let Some(record) = &self.0 {
            let mut notes = record.notes.lock();
            if notes.config.is_some() && !notes.is_over {
                change(&mut notes.event);
            }
        }
    }
}

impl Notes {
    fn code(&mut self, code: u16) {
        self.event.response_status.get_or_insert_default().code = i32::from(code);
    }
}

impl Record {
    fn ask_policy(&self, user: &UserInfo) {
        let mut notes = self.notes.lock();
        let config = self.auditor.policy.evaluate(Asked { user, target: &notes.target });
        let level = config.as_ref().map_or("None", |config| config.level.as_str());
        self.auditor.metrics.levels.with(&[level]).inc();
        notes.event.level = level.to_owned();
        notes.event.user = user.clone();
        notes.config = config;
    }

    /// Nothing is noted any more; gives whether something was.
    fn end(&self, code: Option<u16>) -> bool {
        let mut notes = self.notes.lock();
        if notes.is_over {
            return false;
        }
        code.into_iter().for_each(|code| notes.code(code));
        notes.is_over = true;
        true
    }

    async fn tell_now(&self, stage: Stage) {
        let now = self.auditor.clock.wall().into();
        self.tell(stage, now).await;
    }

    /// Gives whether the event was told, where one was to be.
    async fn tell(&self, stage: Stage, time: MicroTime) -> bool {
        match self.line(stage, Some(time)) {
            Some(text) => self.auditor.delivery.deliver(text).await,
            None => true,
        }
    }

    /// The event of a stage as a line; nothing where the policy does not want it.
    fn line(&self, stage: Stage, time: Option<MicroTime>) -> Option<String> {
        let notes = self.notes.lock();
        notes.config.as_ref().filter(|config| !config.omitted.contains(&stage))?;
        let mut event = notes.event.clone();
        drop(notes);
        event.stage = stage.name().to_owned();
        event.stage_timestamp = time.unwrap_or_else(|| self.auditor.clock.wall().into());
        if stage == Stage::RequestReceived {
            event.response_status = None;
        }
        self.auditor.metrics.events.with(&[]).inc();
        Some(json::encode_typed("Event", "audit.k8s.io/v1", &event) + "\n")
    }
}
