//! What a controller implements, what it gets, and what it answers.

use std::time::Duration;

use base::{SharedClock, SharedRng};
use client::{Client, ClientError, EventRecorder, ObjectKey};

use crate::build::Queue;

/// Brings one object in order.
///
/// Gets a key, not a change: it looks at what is there now and must do the right thing however often it is called.
/// The same key is never reconciled twice at once.
#[async_trait::async_trait]
pub trait Controller: Send + Sync + 'static {
    /// Brings the object of this key in order. An object that is gone is not an error.
    ///
    /// # Errors
    /// Why it could not be done, which says whether and when it is tried again.
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError>;

    /// The controller's own health check; passing by default.
    ///
    /// # Errors
    /// The text to show.
    fn health(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What every reconciliation gets.
#[derive(Clone)]
pub struct Cx {
    /// The API, as the controller's own identity.
    pub client: Client,
    /// The clock.
    pub clock: SharedClock,
    /// The source of randomness.
    pub rng: SharedRng,
    /// Events, as the controller's own component.
    pub events: EventRecorder,
    /// The queue that the key came from.
    pub queue: Queue,
}

/// When the key is due again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// With the next change.
    Done,
    /// After this time, or with the next change.
    After(Duration),
    /// After a delay that grows each time.
    Again,
}

impl Next {
    /// The same, but no later than after `wait`, if there is one.
    #[must_use]
    pub fn within(self, wait: Option<Duration>) -> Self {
        match (wait, self) {
            (Some(wait), Self::After(other)) => Self::After(wait.min(other)),
            (Some(wait), Self::Done) => Self::After(wait),
            (_, next) => next,
        }
    }
}

/// Whether and when something that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Not before the next change.
    Never,
    /// After a delay that grows each time.
    Backoff,
    /// After this time.
    After(Duration),
}

/// Why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Something else that may be better next time.
    #[error("{0}")]
    Failed(String),
    /// Something that only a change can mend.
    #[error("{0}")]
    Permanent(String),
    /// Several steps failed.
    #[error("{}", listed(.0))]
    Several(Vec<ReconcileError>),
}

/// The texts of errors, each once, as a list where they differ; as upstream tells of several.
fn listed(errors: &[ReconcileError]) -> String {
    fn gather(errors: &[ReconcileError], texts: &mut Vec<String>) {
        for error in errors {
            match error {
                ReconcileError::Several(inner) => gather(inner, texts),
                one => {
                    let text = one.to_string();
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
            }
        }
    }
    let mut texts = Vec::new();
    gather(errors, &mut texts);
    if let [only] = texts.as_slice() { only.clone() } else { format!("[{}]", texts.join(", ")) }
}

impl ReconcileError {
    /// A failure that may be better next time.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }

    /// A failure that only a change can mend.
    #[must_use]
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self::Permanent(reason.into())
    }

    /// Nothing, the one error, or all of them.
    ///
    /// # Errors
    /// When there are any.
    pub fn join(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => errors.pop().map_or(Ok(()), Err),
            _ => Err(Self::Several(errors)),
        }
    }

    /// Whether and when to try again. In a namespace that is going away nothing can be made any more; the server's
    /// own wish for a delay is respected.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Client(error) if error.is_namespace_terminating() => Retry::Never,
            Self::Client(error) => error.retry_after().map_or(Retry::Backoff, Retry::After),
            Self::Failed(_) => Retry::Backoff,
            Self::Permanent(_) => Retry::Never,
            Self::Several(errors) => {
                if errors.iter().all(|error| error.retry() == Retry::Never) {
                    Retry::Never
                } else {
                    Retry::Backoff
                }
            }
        }
    }

    /// Whether somebody else was faster, which is no news.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Client(error) if error.is_conflict())
    }
}
