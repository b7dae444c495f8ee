//! Signals of pressure and the thresholds of the configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::quantity::{Quantity, QuantityError};
use api_machinery::time::GoDuration;

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    MemoryAvailable,
    /// What the group of all pods has left; never set by users.
    AllocatableMemoryAvailable,
    NodefsAvailable,
    NodefsInodesFree,
    ImagefsAvailable,
    ImagefsInodesFree,
    /// The file system of writable layers; never set by users.
    ContainerfsAvailable,
    ContainerfsInodesFree,
    PidAvailable,
}

impl Signal {
    /// Those that users may set.
    const SETTABLE: [Self; 6] = [
        Self::MemoryAvailable,
        Self::NodefsAvailable,
        Self::NodefsInodesFree,
        Self::ImagefsAvailable,
        Self::ImagefsInodesFree,
        Self::PidAvailable,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory.available",
            Self::AllocatableMemoryAvailable => "allocatableMemory.available",
            Self::NodefsAvailable => "nodefs.available",
            Self::NodefsInodesFree => "nodefs.inodesFree",
            Self::ImagefsAvailable => "imagefs.available",
            Self::ImagefsInodesFree => "imagefs.inodesFree",
            Self::ContainerfsAvailable => "containerfs.available",
            Self::ContainerfsInodesFree => "containerfs.inodesFree",
            Self::PidAvailable => "pid.available",
        }
    }

    /// The node's condition.
    pub fn condition(self) -> &'static str {
        match self {
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable => "MemoryPressure",
            Self::PidAvailable => "PIDPressure",
            _ => "DiskPressure",
        }
    }

    /// What is short, as messages call it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable => "memory",
            Self::NodefsAvailable | Self::ImagefsAvailable | Self::ContainerfsAvailable => "ephemeral-storage",
            Self::NodefsInodesFree | Self::ImagefsInodesFree | Self::ContainerfsInodesFree => "inodes",
            Self::PidAvailable => "pids",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::SETTABLE.into_iter().find(|signal| signal.name() == name)
    }
}

/// A quantity, or a share of what there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    Bytes(i64),
    Percent(f64),
}

/// When there is pressure.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    pub signal: Signal,
    pub amount: Amount,
    /// How long it must hold before pods are evicted; zero evicts at once.
    pub grace: Duration,
    /// How much more must be free before the threshold counts as left.
    pub reclaim: Option<Amount>,
}

impl Threshold {
    #[cfg(any(test, feature = "fake"))]
    pub fn hard(signal: Signal, amount: Amount) -> Self {
        Self { signal, amount, grace: Duration::ZERO, reclaim: None }
    }
}

/// The maps of the configuration.
pub struct Maps<'a> {
    pub hard: &'a BTreeMap<String, String>,
    pub soft: &'a BTreeMap<String, String>,
    pub grace: &'a BTreeMap<String, String>,
    pub reclaim: &'a BTreeMap<String, String>,
}

/// Why the configuration's thresholds are none, in upstream's words.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ThresholdError {
    #[error("unsupported eviction signal {0}")]
    Signal(String),
    #[error("invalid percentage {0:?}")]
    Percentage(String),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error("eviction percentage threshold {name} must be >= 0%: {value}")]
    BelowNothing { name: String, value: String },
    #[error("eviction percentage threshold {name} must be <= 100%: {value}")]
    AboveAll { name: String, value: String },
    #[error("eviction threshold {name} must be positive: {value}")]
    NotPositive { name: String, value: String },
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    NoGrace(String),
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    Grace(String),
    #[error("eviction percentage minimum reclaim {name} must be positive: {value}")]
    ReclaimNotPositive { name: String, value: String },
    #[error("negative eviction minimum reclaim specified for {0}")]
    NegativeReclaim(String),
}

/// The thresholds: hard ones first, then soft ones.
pub fn parse(maps: &Maps<'_>) -> Result<Vec<Threshold>, ThresholdError> {
    let reclaim = reclaims(maps.reclaim)?;
    let mut thresholds = Vec::new();
    for (name, value) in maps.hard {
        // Copied from the other file systems, whatever is asked for.
        if name.starts_with("containerfs.") {
            tracing::error!("found {name} for hard eviction. ignoring");
            continue;
        }
        if let Some((signal, amount)) = threshold(name, value)? {
            thresholds.push(Threshold {
                signal,
                amount,
                grace: Duration::ZERO,
                reclaim: reclaim.get(&signal).copied(),
            });
        }
    }
    for (name, value) in maps.soft {
        let Some((signal, amount)) = threshold(name, value)? else { continue };
        let text = maps.grace.get(name).ok_or_else(|| ThresholdError::NoGrace(name.clone()))?;
        let grace = GoDuration::parse(text).ok().filter(|grace| grace.nanos() > 0);
        let grace = grace.ok_or_else(|| ThresholdError::Grace(text.clone()))?;
        let reclaim = reclaim.get(&signal).copied();
        thresholds.push(Threshold { signal, amount, grace: grace.to_std(), reclaim });
    }
    Ok(thresholds)
}

/// A threshold; nothing where it is turned off.
fn threshold(name: &str, value: &str) -> Result<Option<(Signal, Amount)>, ThresholdError> {
    let signal = Signal::from_name(name).ok_or_else(|| ThresholdError::Signal(name.to_owned()))?;
    let (named, valued) = (|| name.to_owned(), || value.to_owned());
    if let Some(percent) = percentage(value)? {
        if percent < 0.0 {
            return Err(ThresholdError::BelowNothing { name: named(), value: valued() });
        }
        if percent > 100.0 {
            return Err(ThresholdError::AboveAll { name: named(), value: valued() });
        }
        let off = percent == 0.0 || percent >= 100.0;
        return Ok((!off).then_some((signal, Amount::Percent(percent))));
    }
    let amount = Quantity::parse(value)?;
    if amount.sign() <= 0 {
        return Err(ThresholdError::NotPositive { name: named(), value: valued() });
    }
    Ok(Some((signal, Amount::Bytes(amount.value()))))
}

fn reclaims(map: &BTreeMap<String, String>) -> Result<BTreeMap<Signal, Amount>, ThresholdError> {
    let mut reclaims = BTreeMap::new();
    for (name, value) in map {
        let signal = Signal::from_name(name).ok_or_else(|| ThresholdError::Signal(name.clone()))?;
        let amount = match percentage(value)? {
            Some(percent) if percent <= 0.0 => {
                return Err(ThresholdError::ReclaimNotPositive { name: name.clone(), value: value.clone() });
            }
            Some(percent) => Amount::Percent(percent),
            None => {
                let amount = Quantity::parse(value)?;
                if amount.sign() < 0 {
                    return Err(ThresholdError::NegativeReclaim(name.clone()));
                }
                Amount::Bytes(amount.value())
            }
        };
        reclaims.insert(signal, amount);
    }
    Ok(reclaims)
}

fn percentage(value: &str) -> Result<Option<f64>, ThresholdError> {
    let Some(number) = value.strip_suffix('%') else { return Ok(None) };
    number.parse().map(Some).map_err(|_| ThresholdError::Percentage(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn parsed(
        hard: &[(&str, &str)],
        soft: &[(&str, &str)],
        grace: &[(&str, &str)],
    ) -> Result<Vec<Threshold>, ThresholdError> {
        let none = BTreeMap::new();
        parse(&Maps { hard: &map(hard), soft: &map(soft), grace: &map(grace), reclaim: &none })
    }

    #[test]
    fn thresholds_are_read() {
        let found = parsed(
            &[("memory.available", "100Mi"), ("nodefs.available", "10%"), ("pid.available", "0%")],
            &[("memory.available", "200Mi")],
            &[("memory.available", "1m30s")],
        );
        let soft = Threshold {
            signal: Signal::MemoryAvailable,
            amount: Amount::Bytes(200 << 20),
            grace: Duration::from_secs(90),
            reclaim: None,
        };
        let expected = vec![
            Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(100 << 20)),
            Threshold::hard(Signal::NodefsAvailable, Amount::Percent(10.0)),
            soft,
        ];
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            (parsed(&[("disk", "1")], &[], &[]), "unsupported eviction signal disk"),
            (
                parsed(&[("memory.available", "-1")], &[], &[]),
                "eviction threshold memory.available must be positive: -1",
            ),
            (
                parsed(&[("memory.available", "101%")], &[], &[]),
                "eviction percentage threshold memory.available must be <= 100%: 101%",
            ),
            (
                parsed(&[], &[("memory.available", "1Gi")], &[]),
                "grace period must be specified for the soft eviction threshold memory.available",
            ),
            (
                parsed(&[], &[("memory.available", "1Gi")], &[("memory.available", "0s")]),
                "invalid eviction grace period specified: 0s, must be a positive value",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found.map_err(|error| error.to_string()), Err(expected.to_owned()));
        }
    }
}
