//! Versions of the interface that drivers state.

use std::fmt;

/// A version: its numbers, and the rest as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    numbers: Vec<u64>,
    text: String,
}

/// Why none of a driver's versions will do.
#[derive(Debug, thiserror::Error)]
pub(super) enum VersionError {
    #[error("could not parse {0:?} as version")]
    Unreadable(String),
    #[error(
        "could not find a highest supported version from versions ([{}]) reported by this driver: {}",
        .versions.join(" "),
        .cause.as_ref().map_or("<nil>".to_owned(), ToString::to_string)
    )]
    None { versions: Vec<String>, cause: Option<Box<VersionError>> },
    #[error("highest supported version reported by driver is {0}, must be v1.x")]
    TooOld(Version),
}

impl Version {
    /// Reads `1.2`, `v1.2.0` or `1.2.0-rc1`: two numbers at least.
    fn parse(text: &str) -> Result<Self, VersionError> {
        let unreadable = || VersionError::Unreadable(text.to_owned());
        let plain = text.trim().strip_prefix('v').unwrap_or(text.trim());
        let end = plain.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(plain.len());
        let numbers = plain.get(..end).unwrap_or_default().split('.').map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().map_err(|_| unreadable())?;
        if numbers.len() < 2 {
            return Err(unreadable());
        }
        Ok(Self { numbers, text: plain.to_owned() })
    }

    fn major(&self) -> u64 {
        self.numbers.first().copied().unwrap_or_default()
    }

    /// Whether another is higher; numbers that are not written are 0.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        let length = self.numbers.len().max(other.numbers.len());
        let padded = |version: &Self| {
            let mut numbers = version.numbers.clone();
            numbers.resize(length, 0);
            numbers
        };
        padded(self) < padded(other)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The highest of the versions that is one of 1.x.
pub(super) fn highest(versions: &[String]) -> Result<Version, VersionError> {
    let (mut best, mut cause): (Option<Version>, _) = (None, None);
    for text in versions.iter().rev() {
        match Version::parse(text) {
            Err(error) => cause = Some(Box::new(error)),
            Ok(version) if version.major() > 1 => {}
            Ok(version) if best.as_ref().is_none_or(|best| best.is_below(&version)) => best = Some(version),
            Ok(_) => {}
        }
    }
    let best = best.ok_or_else(|| VersionError::None { versions: versions.to_vec(), cause })?;
    if best.major() == 1 { Ok(best) } else { Err(VersionError::TooOld(best)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_version_one_counts() {
        let none = "could not find a highest supported version from versions";
        let cases: &[(&[&str], Result<&str, String>)] = &[
            (&["1.0.0"], Ok("1.0.0")),
            (&["v1.2.0", "1.10.0", "1.9.3"], Ok("1.10.0")),
            (&["2.0.0", "1.1.0", "0.3.0"], Ok("1.1.0")),
            (&["1.1", "1.1.0"], Ok("1.1.0")),
            (&["0.3.0"], Err("highest supported version reported by driver is 0.3.0, must be v1.x".into())),
            (&["2.0.0"], Err(format!("{none} ([2.0.0]) reported by this driver: <nil>"))),
            (&["one"], Err(format!("{none} ([one]) reported by this driver: could not parse \"one\" as version"))),
            (&["1"], Err(format!("{none} ([1]) reported by this driver: could not parse \"1\" as version"))),
        ];
        for (versions, expected) in cases {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            let found = highest(&versions).map(|version| version.to_string()).map_err(|error| error.to_string());
            assert_eq!(found, expected.clone().map(str::to_owned), "{versions:?}");
        }
    }
}
