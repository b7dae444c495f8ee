//! Counts what only a timeout has healed, by what is logged of it: a story in which that was needed has failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Hears of expectations that expired.
#[derive(Clone, Default)]
pub(crate) struct Healed(Arc<AtomicUsize>);

impl Healed {
    pub(crate) fn by_timeout(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Subscriber for Healed {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == client::EXPIRED
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_expired_counts() {
        let healed = Healed::default();
        tracing::subscriber::with_default(healed.clone(), || {
            tracing::warn!(target: client::EXPIRED, "Expectations expired");
            tracing::error!("Something else");
        });
        assert_eq!(healed.by_timeout(), 1);
    }
}
