//! What is noted of one request, by everybody on its road.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ListMeta, ObjectMeta, Status};
use api_machinery::time::MicroTime;
use api_types::audit_v1::{AuthenticationMetadata, Event};
use api_types::authentication_v1::UserInfo;
use base::SharedClock;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::backend::Backend;
use crate::event::{self, Origin, Stage, Target};
use crate::finished::{Finished, TRUNCATED};
use crate::metrics::AuditMetrics;
use crate::objects::{self, MAX_OBJECT_BYTES};
use crate::policy::{Asked, Level, Policy, RequestAuditConfig};

/// A request that could not be told of, where that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to store audit event")]
pub struct NotStored;

/// What decides about events and takes them.
pub struct Auditor {
    policy: Policy,
    backends: Vec<Backend>,
    metrics: AuditMetrics,
    clock: SharedClock,
}

impl Auditor {
    /// Tells all of `backends` what `policy` wants.
    #[must_use]
    pub fn new(policy: Policy, backends: Vec<Backend>, metrics: AuditMetrics, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { policy, backends, metrics, clock })
    }

    /// Sends what waits, once no more requests come. What has not arrived at the deadline is lost, and counted.
    pub async fn shut_down(&self, deadline: Duration) {
        self.backends.iter().for_each(Backend::close);
        let end = self.clock.monotonic() + deadline;
        for backend in &self.backends {
            backend.drained(end.saturating_duration_since(self.clock.monotonic())).await;
        }
    }

    /// The context of a request that has just come.
    #[must_use]
    pub fn request(self: &Arc<Self>, origin: Origin, target: Target) -> Context {
        let unasked = Some((origin, target));
        let notes = Notes { event: Event::default(), unasked, config: None, is_over: false };
        let (auditor, received) = (Arc::clone(self), MicroTime::from(self.clock.wall()));
        Context(Some(Arc::new(Record { auditor, received, notes: Mutex::new(notes) })))
    }
}

/// What is noted of a request; nothing where nobody listens. Clones share it.
#[derive(Clone, Default)]
pub struct Context(Option<Arc<Record>>);

struct Record {
    auditor: Arc<Auditor>,
    received: MicroTime,
    notes: Mutex<Notes>,
}

struct Notes {
    event: Event,
    /// What the event is to begin with, until the policy was asked whether there is to be one.
    unasked: Option<(Origin, Target)>,
    /// Nothing until the policy was asked, and where it wants nothing.
    config: Option<Arc<RequestAuditConfig>>,
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
        if !record.tell(Stage::RequestReceived, record.received).await {
            record.auditor.metrics.rejected.inc();
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

    /// Notes the object of a request before admission, where the policy wants it, and what the path does not say of it.
    pub fn received(&self, meta: &ObjectMeta, object: impl FnOnce() -> String) {
        self.about(meta);
        self.options(object);
    }

    /// Notes the options in the body of a request, which stand for the object.
    pub fn options(&self, object: impl FnOnce() -> String) {
        let Some(omits) = self.omits_managed_fields(Level::Request) else { return };
        let object = objects::encoded(&object(), omits);
        self.note(|event| event.request_object = Some(object));
    }

    /// Notes the patch in a request, in JSON, where the policy wants it. What is no JSON is noted nowhere.
    pub fn patched(&self, patch: impl FnOnce() -> Option<String>) {
        if self.omits_managed_fields(Level::Request).is_some() {
            let patch = patch().and_then(|text| objects::written(&text));
            self.note(|event| event.request_object = patch);
        }
    }

    /// Whether the object of the answer is to be noted.
    #[must_use]
    pub fn wants_answer(&self) -> bool {
        self.omits_managed_fields(Level::RequestResponse).is_some()
    }

    /// Notes the object of the answer, as JSON, where the policy wants it.
    pub fn answer(&self, object: impl FnOnce() -> Bytes) {
        let Some(omits) = self.omits_managed_fields(Level::RequestResponse) else { return };
        let json = object();
        if json.len() > MAX_OBJECT_BYTES {
            return self.answer_left_out();
        }
        let object = objects::encoded(&String::from_utf8_lossy(&json), omits);
        self.note(|event| event.response_object = Some(object));
    }

    /// Notes that the object of the answer is longer than [`MAX_OBJECT_BYTES`].
    pub fn answer_left_out(&self) {
        self.annotate(TRUNCATED, "true");
    }

    /// Whether objects of this level are noted without their record of managers; nothing where they are not noted.
    fn omits_managed_fields(&self, level: Level) -> Option<bool> {
        let record = self.0.as_ref()?;
        let notes = record.notes.lock();
        notes.config.as_ref().filter(|config| config.level >= level).map(|config| config.omits_managed_fields)
    }

    /// Notes an answer that is a `Status`.
    pub fn answered(&self, status: &Status) {
        self.note(|event| event.response_status = Some(Status { metadata: ListMeta::default(), ..status.clone() }));
    }

    /// The sender could not be told, or the request not be read so far: one event, which is all.
    pub async fn refused(&self, code: u16, message: String) {
        let Some(record) = &self.0 else { return };
        record.ask_policy(&UserInfo::default());
        let status = Status { code: i32::from(code), status: "Failure".into(), message, ..Status::default() };
        self.answered(&status);
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
            && let Some(event) = record.event(Stage::ResponseComplete, None)
        {
            record.auditor.backends.iter().for_each(|backend| backend.post(&event));
        }
    }

    /// The server gave up on the request.
    pub async fn panicked(&self) {
        let Some(record) = &self.0 else { return };
        self.answered(&Status {
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
    /// Asks once; what is asked later does not count.
    fn ask_policy(&self, user: &UserInfo) {
        let mut notes = self.notes.lock();
        let Some((origin, target)) = notes.unasked.take() else { return };
        let config = self.auditor.policy.evaluate(Asked { user, target: &target });
        let level = config.as_ref().map_or("None", |config| config.level.name());
        self.auditor.metrics.levels.with(&[level]).inc();
        if config.is_some() {
            notes.event = Event {
                level: level.to_owned(),
                user: user.clone(),
                request_received_timestamp: self.received,
                ..event::begin(origin, target)
            };
        }
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

    /// Gives false where the request must be refused, as its event was not told.
    async fn tell(&self, stage: Stage, time: MicroTime) -> bool {
        let Some(event) = self.event(stage, Some(time)) else { return true };
        let mut was_told = true;
        for backend in &self.auditor.backends {
            was_told &= backend.deliver(&event).await;
        }
        was_told
    }

    /// The event of a stage; nothing where the policy does not want it.
    fn event(&self, stage: Stage, time: Option<MicroTime>) -> Option<Arc<Finished>> {
        let mut notes = self.notes.lock();
        notes.config.as_ref().filter(|config| !config.omitted.contains(&stage))?;
        // Nothing is noted after the last stage, nor told.
        let mut event = if notes.is_over { std::mem::take(&mut notes.event) } else { notes.event.clone() };
        drop(notes);
        event.stage = stage.name().to_owned();
        event.stage_timestamp = time.unwrap_or_else(|| self.auditor.clock.wall().into());
        if stage == Stage::RequestReceived {
            event.response_status = None;
        }
        self.auditor.metrics.events.inc();
        Some(Arc::new(Finished::new(event)))
    }
}
