//! Whether a plug-in is well, as it was found out last.

use std::time::Duration;

use tokio::time::Instant;

/// How long a plug-in that was well counts as well.
pub(super) const WELL_FOR: Duration = Duration::from_secs(20);
/// How long a plug-in that was not well counts as unwell.
pub(super) const UNWELL_FOR: Duration = Duration::from_secs(3);

/// What came of asking last, and until when that counts.
#[derive(Default)]
pub(super) struct LastHealth(Option<(Result<(), String>, Instant)>);

impl LastHealth {
    /// What still counts, if anything.
    pub(super) fn get(&self, now: Instant) -> Option<Result<(), String>> {
        self.0.as_ref().filter(|(_, until)| now < *until).map(|(answer, _)| answer.clone())
    }

    /// Notes what came of asking just now.
    pub(super) fn note(&mut self, answer: Result<(), String>, now: Instant) -> Result<(), String> {
        let counts_for = if answer.is_ok() { WELL_FOR } else { UNWELL_FOR };
        self.0 = Some((answer.clone(), now + counts_for));
        answer
    }
}
