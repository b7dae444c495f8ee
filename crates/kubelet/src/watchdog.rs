//! systemd's watchdog: as long as the kubelet is well it says so in time; when it falls silent, systemd starts it anew.

use std::num::ParseIntError;
use std::sync::Arc;
use std::time::Duration;

use component_base::health::Health;
use http::StatusCode;

use crate::runtime::text::go_duration;

/// Shorter intervals would end a kubelet that is only busy.
const SHORTEST: Duration = Duration::from_secs(1);
/// Tries to tell systemd, and the pause after the first.
const TRIES: u32 = 2;
const PAUSE: Duration = Duration::from_secs(1);

/// Why systemd's wish cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WatchdogError {
    #[error("configure watchdog: WATCHDOG_USEC {text:?}: {source}")]
    NoNumber { text: String, source: ParseIntError },
    #[error("configure watchdog timeout too small: {}", go_duration(*.0))]
    TooShort(Duration),
}

/// How often systemd wants to hear of this process; nothing where it does not watch it.
///
/// # Errors
/// The interval is too short, or no number.
pub(crate) fn interval(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Duration>, WatchdogError> {
    let own = std::process::id().to_string();
    let meant = variable("WATCHDOG_PID").is_none_or(|pid| pid.is_empty() || pid == own);
    let Some(text) = variable("WATCHDOG_USEC").filter(|text| meant && !text.is_empty()) else { return Ok(None) };
    let micros = text.parse().map_err(|source| WatchdogError::NoNumber { text: text.clone(), source })?;
    let interval = Duration::from_micros(micros);
    if interval <= SHORTEST { Err(WatchdogError::TooShort(interval)) } else { Ok(Some(interval)) }
}

/// Tells systemd at each half interval, if all checks pass, until the caller drops the future.
pub(crate) async fn run(interval: Duration, health: Arc<Health>, tell: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(interval / 2);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let answer = health.answer("/healthz", None).await;
        if answer.is_none_or(|answer| answer.status() != StatusCode::OK) {
            tracing::error!("Do not notify the watchdog this time as the kubelet is not well");
            continue;
        }
        for attempt in 0..TRIES {
            if tell() {
                break;
            }
            tracing::warn!(attempt, "Failed to notify the systemd watchdog");
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use component_base::health::{Check, Endpoint};
    use component_base::metrics::{Metrics, MetricsOptions};

    use super::*;

    #[test]
    fn the_interval_comes_from_systemd() {
        let own = std::process::id().to_string();
        let read = |pid: &str, usec: &str| {
            let (pid, usec) = (pid.to_owned(), usec.to_owned());
            interval(move |name| Some(if name == "WATCHDOG_PID" { pid.clone() } else { usec.clone() }))
        };
        assert_eq!(interval(|_| None), Ok(None));
        assert_eq!(read("", "30000000"), Ok(Some(Duration::from_secs(30))));
        assert_eq!(read(&own, "30000000"), Ok(Some(Duration::from_secs(30))));
        assert_eq!(read("1", "30000000"), Ok(None), "another process is meant");
        let refused = read(&own, "1000000").unwrap_err().to_string();
        assert_eq!(refused, "configure watchdog timeout too small: 1s");
        assert!(read(&own, "soon").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_is_not_well_is_silent() {
        let metrics = Metrics::new(MetricsOptions::default());
        let health = Health::new(&metrics, Duration::ZERO);
        let (well, heard) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let state = well.clone();
        let check = move || if state.load(Ordering::Relaxed) { Ok(()) } else { Err("stuck".to_owned()) };
        health.add(&[Endpoint::Healthz], &Check::instant("syncloop", check)).unwrap();
        let count = heard.clone();
        // The first word of each round is lost.
        let tell = move || count.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let watching = run(Duration::from_secs(20), health, tell);
        let story = async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            assert_eq!(heard.load(Ordering::Relaxed), 6, "at 0, 10 and 20 seconds, each time twice");
            well.store(false, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(heard.load(Ordering::Relaxed), 6);
        };
        tokio::select! {
            () = watching => {}
            () = story => {}
        }
    }
}
