//! What the API server notes of the service account tokens that live in Secrets, and the token cleaner reads: dates, as
//! labels and in a ConfigMap. See KEP-2799.

use api_machinery::time::Time;

/// The label of a Secret that says on which day its token was last used.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label of a Secret whose token is no longer accepted, with the day since when.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// Namespace of the ConfigMap that says since when use is noted.
pub const TRACKING_NAMESPACE: &str = "kube-system";
/// Name of that ConfigMap.
pub const TRACKING_NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// Its key with the date.
pub const TRACKING_SINCE: &str = "since";

/// The date of a time, such as `2026-01-31`; such texts are in the order of their days.
#[must_use]
pub fn date(time: Time) -> String {
    time.to_string().chars().take("2006-01-02".len()).collect()
}

/// The start of a day, where the text is a date.
#[must_use]
pub fn day(text: &str) -> Option<Time> {
    let time = Time::parse(&format!("{text}T00:00:00Z")).ok()?;
    (date(time) == text).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_recognized() {
        for text in ["2026-01-31", "2024-02-29"] {
            assert_eq!(day(text).map(date).as_deref(), Some(text));
        }
        for text in ["2026-13-01", "2026-02-30", "2026-1-1", "today", ""] {
            assert_eq!(day(text), None, "{text}");
        }
    }
}
