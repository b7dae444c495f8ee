//! How families are declared.

use feature_gates::{BINARY, MinorVersion};
use prometheus::Opts;

/// Series that one family may have; far above what a component of a full-sized cluster needs.
pub const MAX_SERIES: usize = 50_000;

/// The bounds of a histogram in seconds where none are given, as in Prometheus' client.
pub const DEFAULT_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Bounds that grow by a factor: `start * factor^i`.
#[must_use]
pub const fn exponential<const N: usize>(start: f64, factor: f64) -> [f64; N] {
    let mut bounds = [0.0; N];
    let (mut bound, mut index) = (start, 0);
    while index < N {
        bounds[index] = bound;
        bound *= factor;
        index += 1;
    }
    bounds
}

/// Bounds of buckets that are as far apart.
#[must_use]
pub const fn linear<const N: usize>(start: f64, step: f64) -> [f64; N] {
    let mut bounds = [0.0; N];
    let (mut bound, mut index) = (start, 0);
    while index < N {
        bounds[index] = bound;
        bound += step;
        index += 1;
    }
    bounds
}

/// What users may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// May change or go at any time.
    Alpha,
    /// Labels may be added.
    Beta,
    /// Does not change.
    Stable,
}

impl Stability {
    /// As shown in help texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Stable => "STABLE",
        }
    }

    /// Minor releases from deprecation until a family is hidden.
    const fn shown_after_deprecation(self) -> u32 {
        match self {
            Self::Alpha => 0,
            Self::Beta => 1,
            Self::Stable => 3,
        }
    }
}

/// A family of metrics.
#[derive(Debug, Clone, Copy)]
pub struct Desc {
    /// Its full name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// What users may rely on.
    pub stability: Stability,
    /// Its labels, in the order in which values are given.
    pub label_names: &'static [&'static str],
    /// Upper bounds, for histograms.
    pub bucket_bounds: &'static [f64],
    /// The release that deprecated it (`1.34.0`).
    pub deprecated_since: Option<&'static str>,
    /// Series it may have.
    pub max_series: usize,
    /// Whether its series outlive `DELETE /metrics`.
    pub is_kept: bool,
}

impl Desc {
    /// A family without labels.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, stability: Stability) -> Self {
        Self {
            name,
            help,
            stability,
            label_names: &[],
            bucket_bounds: DEFAULT_BUCKETS,
            deprecated_since: None,
            max_series: MAX_SERIES,
            is_kept: false,
        }
    }

    /// Its labels.
    #[must_use]
    pub const fn labels(mut self, names: &'static [&'static str]) -> Self {
        self.label_names = names;
        self
    }

    /// The upper bounds of a histogram's buckets, without the infinite one.
    #[must_use]
    pub const fn buckets(mut self, bounds: &'static [f64]) -> Self {
        self.bucket_bounds = bounds;
        self
    }

    /// Deprecated since this release (`1.34.0`).
    #[must_use]
    pub const fn deprecated(mut self, release: &'static str) -> Self {
        self.deprecated_since = Some(release);
        self
    }

    /// Its series outlive `DELETE /metrics`, so that they may be found once and held.
    #[must_use]
    pub const fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }

    /// A lower bound on the number of series.
    #[must_use]
    pub const fn at_most(mut self, series: usize) -> Self {
        self.max_series = series;
        self
    }

    pub(super) fn opts(&self) -> Opts {
        let deprecation =
            self.deprecated_since.map(|release| format!("(Deprecated since {release}) ")).unwrap_or_default();
        Opts::new(self.name, format!("[{}] {deprecation}{}", self.stability.name(), self.help))
    }

    /// Whether this release no longer shows the family. `shown` is the release whose hidden families are wanted back.
    pub(super) fn is_hidden(&self, shown: Option<MinorVersion>) -> bool {
        let Some(since) = self.deprecated_since.and_then(parse_minor) else { return false };
        let hidden_from = MinorVersion { minor: since.minor + self.stability.shown_after_deprecation(), ..since };
        // Asked for once more: those that were hidden with this very release.
        let wanted_back = shown.is_some() && hidden_from == BINARY;
        hidden_from <= BINARY && !wanted_back
    }
}

/// The first two numbers of a version.
pub(super) fn parse_minor(text: &str) -> Option<MinorVersion> {
    let mut numbers = text.split('.').map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    Some(MinorVersion { major, minor })
}
