//! What a thread of the runtime does before it sleeps.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// From one look at the memory of a thread to the next: a look goes through all pages that the thread holds.
const BETWEEN: Duration = Duration::from_secs(10);

thread_local! {
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Now and then has memory let go of that the thread does not use: it may sleep for long, and nobody else can.
pub(crate) fn before_sleep(tidy: fn()) {
    let now = Instant::now();
    if is_due(LOOKED.get(), now) {
        LOOKED.set(Some(now));
        tidy();
    }
}

fn is_due(looked: Option<Instant>, now: Instant) -> bool {
    looked.is_none_or(|looked| now.saturating_duration_since(looked) >= BETWEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_looked_at_now_and_then() {
        let now = Instant::now();
        let cases = [(None, true), (Some(Duration::ZERO), false), (Some(BETWEEN / 2), false), (Some(BETWEEN), true)];
        for (ago, due) in cases {
            assert_eq!(is_due(ago.map(|ago| now - ago), now), due, "{ago:?}");
        }
    }
}
