//! The ways of clients that gates switch. What is asked of a server is the same on either side of each; how it is asked is not.

use component_base::{Feature, Gates};

/// Informers are filled by a watch that begins with all objects (KEP-3157).
pub(crate) const WATCH_LIST: Feature = Feature::named("WatchListClient");
/// A CA bundle in a file is read again when it changes.
pub(crate) const CA_ROTATION: Feature = Feature::named("ClientsAllowCARotation");
/// Clients of free-form objects take CBOR (KEP-4222).
const ALLOW_CBOR: Feature = Feature::named("ClientsAllowCBOR");
/// They send it, too, and so does whoever applies.
const PREFER_CBOR: Feature = Feature::named("ClientsPreferCBOR");

/// What a process that has clients can switch.
pub const GATES: &[Feature] = &[WATCH_LIST, CA_ROTATION, ALLOW_CBOR, PREFER_CBOR];

/// What of that is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) fills_by_watch: bool,
    pub(crate) follows_ca: bool,
    pub(crate) takes_cbor: bool,
    pub(crate) sends_cbor: bool,
}

impl Features {
    pub(crate) fn by(gates: &Gates) -> Self {
        let takes_cbor = gates.enabled(ALLOW_CBOR);
        Self {
            fills_by_watch: gates.enabled(WATCH_LIST),
            follows_ca: gates.enabled(CA_ROTATION),
            takes_cbor,
            sends_cbor: takes_cbor && gates.enabled(PREFER_CBOR),
        }
    }
}

/// As when nobody sets any gate, without making all gates for it.
impl Default for Features {
    fn default() -> Self {
        Self { fills_by_watch: true, follows_ca: true, takes_cbor: false, sends_cbor: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_switched_by_default() {
        assert_eq!(Features::default(), Features::by(&Gates::default()));
        let prefers = Gates::default().with(PREFER_CBOR, true);
        assert_eq!(Features::by(&prefers), Features::default(), "nobody sends what nobody may");
        assert!(Features::by(&prefers.with(ALLOW_CBOR, true)).sends_cbor);
    }
}
