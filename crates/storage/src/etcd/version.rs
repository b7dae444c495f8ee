//! Which versions of etcd report progress on demand dependably.
//!
//! Before 3.4.31 and 3.5.13 a mark could overtake events that were still on their way to the watcher, so a reader that
//! trusted it would serve stale data (etcd issue 15220).

/// Whether a member of this version may be trusted.
pub(super) fn progress_is_dependable(version: &str) -> bool {
    let Some((major, minor, patch)) = parse(version) else { return false };
    match (major, minor) {
        (3, 4) => patch >= 31,
        (3, 5) => patch >= 13,
        (3, minor) => minor > 5,
        (major, _) => major > 3,
    }
}

fn parse(version: &str) -> Option<(u32, u32, u32)> {
    let core = version.split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::progress_is_dependable;

    #[test]
    fn only_fixed_versions_are_trusted() {
        for (version, dependable) in [
            ("3.3.27", false),
            ("3.4.23", false),
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.5.16", true),
            ("3.6.0-rc.1", true),
            ("3.7.2", true),
            ("4.0.0", true),
            ("", false),
            ("nonsense", false),
        ] {
            assert_eq!(progress_is_dependable(version), dependable, "{version}");
        }
    }
}
