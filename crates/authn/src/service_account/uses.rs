//! How often which kinds of service account tokens are used, with upstream's names.

use component_base::metrics::{Counters, Desc, Metrics, Stability};

const LEGACY: Desc =
    Desc::new("serviceaccount_legacy_tokens_total", "Tokens without an audience that were used.", Stability::Alpha);
const STALE: Desc = Desc::new(
    "serviceaccount_stale_tokens_total",
    "Tokens that were used after the time that was asked for was over.",
    Stability::Alpha,
);
const VALID: Desc = Desc::new(
    "serviceaccount_valid_tokens_total",
    "Tokens of an extended life that were used within the time that was asked for.",
    Stability::Alpha,
);
const AUTOMATIC: Desc = Desc::new(
    "serviceaccount_legacy_auto_token_uses_total",
    "Tokens that were used of Secrets that were made for an account.",
    Stability::Alpha,
);
const MANUAL: Desc = Desc::new(
    "serviceaccount_legacy_manual_token_uses_total",
    "Tokens that were used of Secrets that somebody made.",
    Stability::Alpha,
);
const INVALID: Desc = Desc::new(
    "serviceaccount_invalid_legacy_auto_token_uses_total",
    "Tokens that were refused, as their Secret is marked invalid.",
    Stability::Alpha,
);

/// The families.
#[derive(Clone)]
pub struct TokenUses {
    legacy: Counters,
    stale: Counters,
    valid: Counters,
    automatic: Counters,
    manual: Counters,
    invalid: Counters,
}

/// What is counted of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Legacy,
    Stale,
    Valid,
    Automatic,
    Manual,
    Invalid,
}

impl TokenUses {
    /// Adds the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            legacy: metrics.counters(&LEGACY),
            stale: metrics.counters(&STALE),
            valid: metrics.counters(&VALID),
            automatic: metrics.counters(&AUTOMATIC),
            manual: metrics.counters(&MANUAL),
            invalid: metrics.counters(&INVALID),
        }
    }

    pub(super) fn count(&self, kind: Use) {
        let family = match kind {
            Use::Legacy => &self.legacy,
            Use::Stale => &self.stale,
            Use::Valid => &self.valid,
            Use::Automatic => &self.automatic,
            Use::Manual => &self.manual,
            Use::Invalid => &self.invalid,
        };
        family.with(&[]).inc();
    }
}
