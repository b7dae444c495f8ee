//! How much is measured.

use std::path::PathBuf;
use std::time::Duration;

/// The sizes of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where `kube-apiserver` is.
    pub bin_dir: PathBuf,
    /// The etcd to use; without one, what needs it is left out.
    pub etcd: Option<PathBuf>,
    /// How many pods there are when reads are measured.
    pub pods: usize,
    /// How many watch at a time.
    pub watchers: usize,
    /// Events that each watcher gets per round.
    pub events: usize,
    /// How often each figure is taken, in turns with the peer.
    pub rounds: usize,
    /// How long nobody asks for the objects before what they take then is measured.
    pub idle: Duration,
    /// Requests on the way at a time, for what is measured in parallel.
    pub parallel: usize,
    /// What to do alone, for a profiler.
    pub only: Option<Only>,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Pods are created.
    Creates,
    /// They are got again and again.
    Gets,
    /// They are written until they have what running pods have, and are left alone then.
    Memory,
    /// Deployments are changed.
    Changes,
}

impl Only {
    /// All of them, with their names on the command line.
    pub const ALL: [(&str, Self); 4] =
        [("creates", Self::Creates), ("gets", Self::Gets), ("memory", Self::Memory), ("changes", Self::Changes)];

    /// By its name on the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, it)| it)
    }
}

impl Options {
    /// The run that figures are published from.
    #[must_use]
    pub fn full(bin_dir: PathBuf, etcd: Option<PathBuf>) -> Self {
        let idle = Duration::from_secs(180);
        Self { bin_dir, etcd, pods: 10_000, watchers: 1_000, events: 20, rounds: 9, idle, parallel: 16, only: None }
    }

    /// A run of seconds that shows that everything works; its figures mean nothing.
    #[must_use]
    pub fn quick(bin_dir: PathBuf, etcd: Option<PathBuf>) -> Self {
        let idle = Duration::ZERO;
        Self { bin_dir, etcd, pods: 60, watchers: 20, events: 3, rounds: 2, idle, parallel: 4, only: None }
    }
}
