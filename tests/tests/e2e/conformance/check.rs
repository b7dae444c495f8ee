//! One check: the items of the suite that it shows, and how.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::live::Place;

/// No check waits longer for all that it waits for together.
const DEADLINE: Duration = Duration::from_secs(300);

type Run = Box<dyn FnOnce(Place) -> LocalBoxFuture<'static, ()>>;

/// Something that must hold; it panics where it does not.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// The suite's names of what is shown, without their tags in brackets.
    pub(crate) items: Vec<String>,
    run: Run,
}

/// How a check went.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) items: Vec<String>,
    pub(crate) held: bool,
    pub(crate) took: Duration,
}

impl Check {
    pub(crate) fn new<F>(name: &'static str, items: &[&str], run: impl FnOnce(Place) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let items = items.iter().map(ToString::to_string).collect();
        Self::of(name, items, run)
    }

    pub(crate) fn of<F>(name: &'static str, items: Vec<String>, run: impl FnOnce(Place) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self { name, items, run: Box::new(move |place| run(place).boxed_local()) }
    }

    /// Runs when the gate has room.
    pub(crate) async fn run(self, place: Place, gate: Arc<Semaphore>) -> Outcome {
        let Self { name, items, run } = self;
        let _room = gate.acquire().await.expect("the gate is never closed");
        let start = Instant::now();
        let limited = tokio::time::timeout(DEADLINE, run(place));
        let held = match AssertUnwindSafe(limited).catch_unwind().await {
            Ok(in_time) => in_time.is_ok(),
            Err(_) => false,
        };
        Outcome { name, items, held, took: start.elapsed() }
    }
}

/// Whether a check is asked for.
pub(crate) fn wanted(check: &Check) -> bool {
    let Ok(filter) = std::env::var("COXSWAIN_E2E_CHECKS") else { return true };
    filter.split(',').any(|text| check.name.contains(text))
}
