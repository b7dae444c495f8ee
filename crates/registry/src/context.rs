//! What a request brings along: who asks, the admission it must pass, and how an update makes its object.

use std::ops::Deref;
use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use async_trait::async_trait;
use kinds::rules::{RuleContext, Rules};

use crate::store::ManagedFields;

/// The rules of a kind: a static one's, or those of a kind that came at run time.
#[derive(Clone)]
pub enum RulesRef {
    /// A built-in kind.
    Static(&'static dyn Rules),
    /// A custom kind.
    Shared(Arc<dyn Rules>),
}

impl Deref for RulesRef {
    type Target = dyn Rules;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Static(rules) => *rules,
            Self::Shared(rules) => &**rules,
        }
    }
}

/// Who asks, when, and where.
#[derive(Debug, Clone)]
pub struct RequestCx {
    /// The time and the caller.
    pub rules: RuleContext,
    /// The namespace of the path; empty for cluster scope and for all namespaces.
    pub namespace: String,
    /// Do everything but write.
    pub dry_run: bool,
}

/// What an admission step is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A creation.
    Create,
    /// An update, also of a subresource.
    Update,
    /// A deletion.
    Delete,
}

/// The admission chain, bound to a request by the server. It runs inside the transaction: after a lost race all of it
/// runs again, on the object as it is then.
#[async_trait]
pub trait Admission: Send + Sync {
    /// May change the object.
    async fn mutate(
        &self,
        _operation: Operation,
        _object: &mut Box<dyn Object>,
        _old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// May refuse; a deletion has no new object.
    async fn validate(
        &self,
        _operation: Operation,
        _object: Option<&dyn Object>,
        _old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Tells the client something, whether the request succeeds or fails after all.
    fn warn(&self, _texts: &[String]) {}

    /// Asked when an update turns out to create: the caller needs that verb, too.
    async fn authorize_create(&self) -> Result<(), ApiError> {
        Ok(())
    }
}

/// Admits everything; for the server's own writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdmitAll;

impl Admission for AdmitAll {}

/// Records which manager owns which fields: gets the live object, if there is one, and changes the new one.
pub type Track<'a> = dyn Fn(Option<&dyn Object>, &mut dyn Object) -> Result<(), ApiError> + Send + Sync + 'a;

/// What runs inside a write.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Admission.
    pub admission: &'a dyn Admission,
    /// Field ownership; nothing where the change keeps it itself.
    pub track: Option<&'a Track<'a>>,
}

impl Hooks<'static> {
    /// No admission and no tracking.
    #[must_use]
    pub fn none() -> Self {
        Self { admission: &AdmitAll, track: None }
    }
}

impl Hooks<'_> {
    /// Only who has the record tracked can do without it.
    pub(crate) fn managed_fields(&self) -> ManagedFields {
        if self.track.is_some() { ManagedFields::MayGo } else { ManagedFields::Stay }
    }
}

/// How an update makes the new object out of the live one. Called again after a lost race.
pub trait Change: Send + Sync {
    /// The new object, in the version of the request; `None` where there is no object and one may be created.
    ///
    /// # Errors
    /// Whatever the client did wrong.
    fn apply(&self, live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError>;

    /// Whether the change creates an object where there is none, whatever the kind says of `PUT`: apply does.
    fn creates(&self) -> CreateWhenAbsent {
        CreateWhenAbsent::AsTheKind
    }

    /// Whether a uid in the new object says which object is meant, as in a `PUT`: another one is then a conflict. What
    /// patches put there is a change like any other, which the rules refuse.
    fn names_uid(&self) -> bool {
        true
    }
}

/// Whether an update may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateWhenAbsent {
    /// As the kind allows it for `PUT`.
    AsTheKind,
    /// Yes: apply.
    Always,
    /// No: patches.
    Never,
}

/// The change of a `PUT`: this object, whatever was there.
pub struct Replace(pub Box<dyn Object>);

impl Change for Replace {
    fn apply(&self, _live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        Ok(self.0.clone())
    }
}

/// A change given as a function of the live object, which must exist.
pub struct Patch<F>(pub F);

impl<F> Change for Patch<F>
where
    F: Fn(&dyn Object) -> Result<Box<dyn Object>, ApiError> + Send + Sync,
{
    fn apply(&self, live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        live.map_or_else(|| Err(ApiError::internal("a patch needs a live object")), |live| (self.0)(live))
    }

    fn creates(&self) -> CreateWhenAbsent {
        CreateWhenAbsent::Never
    }
}
