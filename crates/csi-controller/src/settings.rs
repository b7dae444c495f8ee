//! What the process was told.

use std::time::Duration;

use client::RateLimit;

use crate::driver::Driver;

/// Where the process works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// For the whole cluster.
    Cluster,
    /// On a node, for the volumes of that node.
    Node(String),
}

impl Place {
    /// The node, if it is one.
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::Cluster => None,
            Self::Node(name) => Some(name),
        }
    }
}

/// What the controllers get.
#[derive(Clone)]
pub struct Settings {
    /// The driver; `None` for the part of snapshots that all drivers share.
    pub driver: Option<Driver>,
    /// Where the process works.
    pub place: Place,
    /// The filesystem of volumes whose class names none; the driver's choice where empty.
    pub default_fs_type: String,
    /// Whether the driver is told the names of claim and volume.
    pub tells_names: bool,
    /// Whether a volume must be reachable from the very segment of the chosen node.
    pub strict_topology: bool,
    /// Whether drivers are told of the cluster's topology where no node was chosen.
    pub immediate_topology: bool,
    /// Where capacities are written; none are where it is empty.
    pub capacity_namespace: String,
    /// How often the driver is asked for its room.
    pub capacity_interval: Duration,
    /// How often a failure is tried again.
    pub retry: RateLimit,
    /// How many objects of a kind are worked on at a time.
    pub workers: usize,
}

impl Settings {
    /// The usual ones for a driver.
    #[must_use]
    pub fn new(driver: Option<Driver>, place: Place) -> Self {
        Self {
            driver,
            place,
            default_fs_type: String::new(),
            tells_names: false,
            strict_topology: false,
            immediate_topology: true,
            capacity_namespace: String::new(),
            capacity_interval: Duration::from_secs(60),
            retry: RateLimit { base: Duration::from_secs(1), longest: Duration::from_secs(300), overall: None },
            workers: 10,
        }
    }
}
