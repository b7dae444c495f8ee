//! The reflector's decisions: what follows from what happened. Pure, so that the table of cases is a test.

use crate::error::ClientError;

/// What went wrong, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// 410: the version is too old.
    Gone,
    /// The version is newer than the server.
    TooLarge,
    /// 429.
    TooMany,
    /// Nobody listens.
    Refused,
    /// The stream ended before all initial events had come.
    Ended,
    /// Anything else.
    Other,
}

impl Failure {
    pub(super) fn of(error: &ClientError) -> Self {
        if error.is_resource_version_too_large() {
            Self::TooLarge
        } else if error.is_gone() {
            Self::Gone
        } else if error.is_too_many_requests() {
            Self::TooMany
        } else if error.is_connection_refused() {
            Self::Refused
        } else {
            Self::Other
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    /// The list is in the store.
    Listed,
    /// Listing failed.
    ListFailed(Failure),
    /// All initial events are in the store, and the same stream goes on.
    Streamed,
    /// Filling by stream failed.
    StreamFailed(Failure),
    /// The watch could not be started.
    WatchNotStarted(Failure),
    /// The watch broke.
    WatchFailed(Failure),
    /// The server ended the watch, as it does after the timeout.
    WatchEnded,
    /// The server ended the watch at once, without any event.
    WatchTooShort,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Next {
    /// The step.
    pub(super) step: Step,
    /// Whether to wait first.
    pub(super) wait: bool,
    /// Whether the version must not be used any more.
    pub(super) forget_version: bool,
}

/// A step of the reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Fill the store, by stream where that is wanted.
    Fill,
    /// Fill the store by a list.
    List,
    /// Watch from the last version.
    Watch,
    /// Read on from the stream that filled the store.
    ReadOn,
}

/// Decides what follows.
pub(super) fn next(happened: Happened) -> Next {
    let go = |step| Next { step, wait: false, forget_version: false };
    let wait = |step| Next { step, wait: true, forget_version: false };
    match happened {
        Happened::Listed | Happened::WatchEnded => go(Step::Watch),
        Happened::Streamed => go(Step::ReadOn),
        Happened::ListFailed(Failure::Gone | Failure::TooLarge) => Next { forget_version: true, ..go(Step::List) },
        Happened::StreamFailed(Failure::Gone | Failure::TooLarge) => Next { forget_version: true, ..go(Step::Fill) },
        Happened::StreamFailed(Failure::Ended) => go(Step::Fill),
        Happened::StreamFailed(Failure::Other) => go(Step::List),
        Happened::WatchNotStarted(Failure::Refused | Failure::TooMany) | Happened::WatchFailed(Failure::TooMany) => {
            wait(Step::Watch)
        }
        Happened::WatchNotStarted(Failure::TooLarge) | Happened::WatchFailed(Failure::TooLarge) => {
            Next { forget_version: true, ..wait(Step::Fill) }
        }
        Happened::ListFailed(_)
        | Happened::StreamFailed(Failure::TooMany | Failure::Refused)
        | Happened::WatchNotStarted(_)
        | Happened::WatchFailed(_)
        | Happened::WatchTooShort => wait(Step::Fill),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_reaction() {
        use Failure::{Ended, Gone, Other, Refused, TooLarge, TooMany};
        use Happened::{ListFailed, StreamFailed, WatchEnded, WatchFailed, WatchNotStarted, WatchTooShort};
        let cases = [
            (Happened::Listed, Step::Watch, false, false),
            (Happened::Streamed, Step::ReadOn, false, false),
            (WatchEnded, Step::Watch, false, false),
            (WatchTooShort, Step::Fill, true, false),
            (ListFailed(Gone), Step::List, false, true),
            (ListFailed(TooLarge), Step::List, false, true),
            (ListFailed(Other), Step::Fill, true, false),
            (ListFailed(TooMany), Step::Fill, true, false),
            (ListFailed(Refused), Step::Fill, true, false),
            (WatchNotStarted(Refused), Step::Watch, true, false),
            (WatchNotStarted(TooMany), Step::Watch, true, false),
            (WatchNotStarted(Gone), Step::Fill, true, false),
            (WatchNotStarted(TooLarge), Step::Fill, true, true),
            (WatchNotStarted(Other), Step::Fill, true, false),
            (WatchFailed(Gone), Step::Fill, true, false),
            (WatchFailed(TooMany), Step::Watch, true, false),
            (WatchFailed(TooLarge), Step::Fill, true, true),
            (WatchFailed(Refused), Step::Fill, true, false),
            (WatchFailed(Other), Step::Fill, true, false),
            (StreamFailed(Ended), Step::Fill, false, false),
            (StreamFailed(Other), Step::List, false, false),
            (StreamFailed(Gone), Step::Fill, false, true),
            (StreamFailed(TooLarge), Step::Fill, false, true),
            (StreamFailed(TooMany), Step::Fill, true, false),
            (StreamFailed(Refused), Step::Fill, true, false),
        ];
        for (happened, step, wait, forget_version) in cases {
            assert_eq!(next(happened), Next { step, wait, forget_version }, "{happened:?}");
        }
    }
}
