//! What the node keeps for itself, and what is left for pods.

use std::collections::BTreeMap;

use api_machinery::quantity::{Quantity, QuantityError};
use api_types::core_v1::ResourceList;

use super::thresholds::{Amount, Signal, Threshold};

/// What can be kept.
const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

/// The reservations of the configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reservations {
    /// `kubeReserved` and `systemReserved` together, without `pid`.
    pub reserved: ResourceList,
    /// Processes kept.
    pub pids: i64,
    /// `evictionHard`.
    pub hard: Vec<Threshold>,
}

/// Why a reservation map is none, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    #[error("cannot reserve {0:?} resource")]
    Resource(String),
    #[error("failed to parse quantity {text:?} for {name:?} resource: {source}")]
    Quantity { name: String, text: String, source: QuantityError },
    #[error("resource quantity for {name:?} cannot be negative: {text}")]
    Negative { name: String, text: String },
}

/// More is kept than there is. The machine would have to grow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid Node Allocatable configuration. Resource {name:?} has a reservation of {kept} but capacity of {capacity}. \
     Expected capacity >= reservation."
)]
pub struct Overcommitted {
    name: String,
    kept: String,
    capacity: String,
}

/// Reads one of the reservation maps.
pub fn parse(map: &BTreeMap<String, String>) -> Result<BTreeMap<String, Quantity>, ReserveError> {
    let mut list = BTreeMap::new();
    for (name, text) in map {
        if !RESERVABLE.contains(&name.as_str()) {
            return Err(ReserveError::Resource(name.clone()));
        }
        let (named, written) = (|| name.clone(), || text.clone());
        let amount = Quantity::parse(text).map_err(|source| ReserveError::Quantity {
            name: named(),
            text: written(),
            source,
        })?;
        if amount.sign() < 0 {
            return Err(ReserveError::Negative { name: named(), text: written() });
        }
        list.insert(name.clone(), amount);
    }
    Ok(list)
}

impl Reservations {
    /// Both maps together.
    pub fn new(kube: BTreeMap<String, Quantity>, system: BTreeMap<String, Quantity>, hard: Vec<Threshold>) -> Self {
        let mut own = Self { hard, ..Self::default() };
        for (name, amount) in kube.into_iter().chain(system) {
            if name == "pid" {
                own.pids = own.pids.saturating_add(amount.value());
            } else {
                own.reserved.entry(name).or_default().add(&amount);
            }
        }
        own
    }

    /// What is kept of a capacity altogether, thresholds included.
    pub fn kept(&self, capacity: &ResourceList) -> ResourceList {
        let mut kept = self.reserved.clone();
        for threshold in &self.hard {
            let Some(name) = resource_of(threshold.signal) else { continue };
            let full = capacity.get(name).map_or(0, Quantity::value);
            kept.entry(name.to_owned()).or_default().add(&bytes(threshold.amount.of(full)));
        }
        kept
    }

    /// What is left for pods of a capacity; more kept than there is leaves nothing.
    pub fn allocatable(&self, capacity: &ResourceList) -> ResourceList {
        let mut left = capacity.clone();
        for (name, amount) in &mut left {
            if let Some(kept) = self.reserved.get(name) {
                amount.sub(kept);
            }
            if let Some(threshold) = self.hard.iter().find(|threshold| resource_of(threshold.signal) == Some(name)) {
                let full = capacity.get(name).map_or(0, Quantity::value);
                amount.sub(&bytes(threshold.amount.of(full)));
            }
        }
        take_huge_pages(&mut left);
        for amount in left.values_mut() {
            if amount.sign() < 0 {
                *amount = Quantity::default();
            }
        }
        left
    }

    /// The limit of all pods together, which thresholds do not lower: (thousandths of processors, bytes).
    pub fn enforced(&self, capacity: &ResourceList) -> (i64, i64) {
        let less = |name: &str| {
            let mut amount = capacity.get(name).cloned().unwrap_or_default();
            if let Some(kept) = self.reserved.get(name) {
                amount.sub(kept);
            }
            amount
        };
        (less("cpu").milli_value(), less("memory").value())
    }

    /// How many processes are left for all pods together, of as many as there may be.
    pub fn processes_left(&self, most: u64) -> Result<u64, Overcommitted> {
        let kept = u64::try_from(self.pids).unwrap_or_default();
        let overcommitted = || Overcommitted { name: "pid".into(), kept: kept.to_string(), capacity: most.to_string() };
        most.checked_sub(kept).ok_or_else(overcommitted)
    }

    /// Fails when more is kept than there is.
    pub fn check(&self, capacity: &ResourceList) -> Result<(), Overcommitted> {
        for (name, amount) in capacity {
            let Some(kept) = self.reserved.get(name) else { continue };
            if kept > amount {
                return Err(Overcommitted { name: name.clone(), kept: kept.to_string(), capacity: amount.to_string() });
            }
        }
        Ok(())
    }
}

fn resource_of(signal: Signal) -> Option<&'static str> {
    match signal {
        Signal::MemoryAvailable => Some("memory"),
        Signal::NodefsAvailable => Some("ephemeral-storage"),
        _ => None,
    }
}

/// Memory in huge pages is not for anything else.
fn take_huge_pages(left: &mut ResourceList) {
    let huge: Vec<Quantity> =
        left.iter().filter(|(name, _)| name.starts_with("hugepages-")).map(|(_, amount)| amount.clone()).collect();
    if let Some(memory) = left.get_mut("memory") {
        huge.iter().for_each(|amount| memory.sub(amount));
    }
}

/// A number of bytes as a quantity.
pub fn bytes(bytes: i64) -> Quantity {
    Quantity::from_value(bytes, api_machinery::quantity::Format::BinarySi)
}

impl Amount {
    /// The amount, of this capacity.
    pub fn of(&self, capacity: i64) -> i64 {
        match self {
            Self::Bytes(bytes) => *bytes,
            #[expect(clippy::cast_possible_truncation, reason = "a share of a capacity fits where the capacity does")]
            #[expect(clippy::cast_precision_loss, reason = "a byte more or less does not matter")]
            Self::Percent(percent) => (capacity as f64 * percent / 100.0) as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity::parse(text).unwrap())).collect()
    }

    #[test]
    fn what_is_kept_is_not_for_pods() {
        let capacity = list(&[
            ("cpu", "4"),
            ("memory", "8Gi"),
            ("ephemeral-storage", "100Gi"),
            ("pods", "110"),
            ("hugepages-2Mi", "1Gi"),
        ]);
        let hard = vec![
            Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(100 << 20)),
            Threshold::hard(Signal::NodefsAvailable, Amount::Percent(10.0)),
        ];
        let kube = parse(
            &[("cpu".into(), "500m".into()), ("memory".into(), "1Gi".into()), ("pid".into(), "100".into())].into(),
        )
        .unwrap();
        let system = parse(&[("cpu".into(), "500m".into())].into()).unwrap();
        let own = Reservations::new(kube, system, hard);
        let left = own.allocatable(&capacity);
        let text: Vec<String> = left.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(text, ["cpu=3", "ephemeral-storage=90Gi", "hugepages-2Mi=1Gi", "memory=6044Mi", "pods=110"]);
        assert_eq!(own.enforced(&capacity), (3000, 7 << 30));
        assert_eq!(own.processes_left(4000), Ok(3900));
        let error = own.processes_left(99).unwrap_err().to_string();
        assert!(error.contains("Resource \"pid\" has a reservation of 100 but capacity of 99."), "{error}");
        let kept = own.kept(&capacity);
        let text: Vec<String> = kept.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(text, ["cpu=1", "ephemeral-storage=10Gi", "memory=1124Mi"]);
        assert!(own.check(&capacity).is_ok());
        let error = own.check(&list(&[("cpu", "500m")])).unwrap_err().to_string();
        assert!(error.contains("Resource \"cpu\" has a reservation of 1 but capacity of 500m."), "{error}");
        assert_eq!(own.allocatable(&list(&[("cpu", "500m")]))["cpu"].milli_value(), 0);
    }

    #[test]
    fn only_some_resources_can_be_kept() {
        for (name, text, expected) in [
            ("gpu", "1", "cannot reserve \"gpu\" resource"),
            ("cpu", "-1", "resource quantity for \"cpu\" cannot be negative: -1"),
            ("cpu", "x", "failed to parse quantity \"x\" for \"cpu\" resource: "),
        ] {
            let error = parse(&[(name.to_owned(), text.to_owned())].into()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
