//! Between the form in which a resource's objects are kept, in the store and in the cache, and another version of them that
//! is served. What was converted is kept with the object, so that all who list and watch that version share it and its
//! encodings.

use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use async_trait::async_trait;
use kinds::versions::VersionConversion;
use watch_cache::{ChangeEvent, Stored, VersionId};

use crate::questions::{Answer, Asking, Next, Questions};

/// Converts at once, from nothing but the object.
pub trait Convert: Send + Sync {
    /// A stored object as the served version shows it.
    ///
    /// # Errors
    /// When it is of another kind, or cannot be shown.
    fn to_served(&self, stored: &Arc<dyn Object>) -> Result<Box<dyn Object>, ApiError>;
    /// An object of the served version as it is stored.
    ///
    /// # Errors
    /// When it is of another kind, or cannot be stored.
    fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError>;
    /// The form in which field selectors look at a stored object; nothing where that is the stored form. Nothing is kept:
    /// most objects that a selector looks at are not shown.
    fn for_selection(&self, _stored: &dyn Object) -> Option<Box<dyn Object>> {
        None
    }
}

/// Converts by asking somebody else, such as a webhook, about many objects at a time.
#[async_trait]
pub trait ConvertElsewhere: Send + Sync {
    /// Stored objects as the served version shows them, all of them and in their order.
    ///
    /// # Errors
    /// When nobody answers, or one of them cannot be shown.
    async fn to_served(&self, stored: &[Arc<Stored>]) -> Result<Vec<Box<dyn Object>>, ApiError>;
    /// An object of the served version as it is stored.
    ///
    /// # Errors
    /// When nobody answers, or it cannot be stored.
    async fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError>;
}

/// The conversion of one served version.
pub struct Conversion {
    version: VersionId,
    how: How,
}

enum How {
    AtOnce(Arc<dyn Convert>),
    Elsewhere { converter: Arc<dyn ConvertElsewhere>, questions: Questions },
}

impl Conversion {
    /// One that takes no time.
    #[must_use]
    pub fn at_once(converter: Arc<dyn Convert>) -> Arc<Self> {
        Arc::new(Self { version: VersionId::fresh(), how: How::AtOnce(converter) })
    }

    /// One that waits for somebody else.
    #[must_use]
    pub fn elsewhere(converter: Arc<dyn ConvertElsewhere>) -> Arc<Self> {
        let how = How::Elsewhere { converter, questions: Questions::default() };
        Arc::new(Self { version: VersionId::fresh(), how })
    }

    /// The item in the served version, if nobody has to be asked for it.
    pub(crate) fn at_hand(&self, item: &Stored) -> Result<Option<Arc<Stored>>, ApiError> {
        if let Some(view) = item.view(self.version) {
            return Ok(Some(view));
        }
        match &self.how {
            How::AtOnce(converter) => {
                let object = converter.to_served(&item.shared_object())?;
                Ok(Some(item.keep_view(self.version, object)))
            }
            How::Elsewhere { .. } => Ok(None),
        }
    }

    /// Sees to it that all items are at hand.
    pub(crate) async fn fetch(&self, items: impl Iterator<Item = &Arc<Stored>>) -> Result<(), ApiError> {
        let How::Elsewhere { converter, questions } = &self.how else { return Ok(()) };
        let is_known = |item: &Stored| item.view(self.version).is_some();
        let mut missing: Vec<_> = items.filter(|item| !is_known(item)).map(Arc::clone).collect();
        while let Some(next) = questions.next(&mut missing, is_known) {
            let (question, outcome) = match next {
                Next::Ask(asking) => {
                    let outcome = self.ask(&**converter, &asking).await;
                    (asking.close(outcome.clone()), outcome)
                }
                Next::Wait(question) => match question.answer().await {
                    Some(outcome) => (question, outcome),
                    None => continue,
                },
            };
            outcome?;
            question.strike_from(&mut missing);
        }
        Ok(())
    }

    async fn ask(&self, converter: &dyn ConvertElsewhere, asking: &Asking<'_>) -> Answer {
        let (items, _seat) = asking.turn().await?;
        let converted = converter.to_served(items).await?;
        if converted.len() != items.len() {
            let (asked, answered) = (items.len(), converted.len());
            return Err(ApiError::internal(format_args!("{answered} of {asked} objects were converted")));
        }
        for (item, object) in items.iter().zip(converted) {
            let _kept = item.keep_view(self.version, object);
        }
        Ok(())
    }

    /// The item in the served version.
    pub(crate) async fn to_served(&self, item: &Arc<Stored>) -> Result<Arc<Stored>, ApiError> {
        self.fetch([item].into_iter()).await?;
        self.at_hand(item)?.ok_or_else(|| ApiError::internal("an object was not kept after its conversion"))
    }

    /// An object of the served version as it is stored.
    pub(crate) async fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        match &self.how {
            How::AtOnce(converter) => converter.to_stored(served),
            How::Elsewhere { converter, .. } => converter.to_stored(served).await,
        }
    }

    /// See [`Convert::for_selection`].
    pub(crate) fn for_selection(&self, stored: &dyn Object) -> Option<Box<dyn Object>> {
        match &self.how {
            How::AtOnce(converter) => converter.for_selection(stored),
            How::Elsewhere { .. } => None,
        }
    }

    /// An event about an item that is at hand, in the served version; nothing where it is not at hand.
    pub(crate) fn event_at_hand(&self, event: &ChangeEvent) -> Result<Option<ChangeEvent>, ApiError> {
        Ok(self.at_hand(&event.item)?.map(|view| event.clone().seen_as(self.version, view)))
    }
}

/// The conversion that a kind of the release states.
pub(crate) struct OfKind(pub(crate) VersionConversion);

impl Convert for OfKind {
    fn to_served(&self, stored: &Arc<dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        self.0.to_served(stored).ok_or_else(|| ApiError::internal("a stored object of another kind"))
    }

    fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        self.0.to_stored(served).ok_or_else(|| ApiError::internal("an object of another kind"))
    }

    fn for_selection(&self, stored: &dyn Object) -> Option<Box<dyn Object>> {
        match self.0 {
            VersionConversion::SameForm(_) => None,
            VersionConversion::By { to_served, .. } => to_served(stored),
        }
    }
}
