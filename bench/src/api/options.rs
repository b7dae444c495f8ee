//! How much is measured.

use std::path::PathBuf;

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
    /// Requests on the way at a time, for what is measured in parallel.
    pub parallel: usize,
    /// Whether to stop when the pods are created.
    pub creates_only: bool,
}

impl Options {
    /// The run that figures are published from.
    #[must_use]
    pub fn full(bin_dir: PathBuf, etcd: Option<PathBuf>) -> Self {
        Self { bin_dir, etcd, pods: 10_000, watchers: 1_000, events: 20, rounds: 9, parallel: 16, creates_only: false }
    }

    /// A run of seconds that shows that everything works; its figures mean nothing.
    #[must_use]
    pub fn quick(bin_dir: PathBuf, etcd: Option<PathBuf>) -> Self {
        Self { bin_dir, etcd, pods: 60, watchers: 20, events: 3, rounds: 2, parallel: 4, creates_only: false }
    }
}
