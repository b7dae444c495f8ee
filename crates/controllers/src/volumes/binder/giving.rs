//! Free volumes that are about to be given to claims: no two workers choose the same one, of which one would fail.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// The names of the volumes that are being given.
#[derive(Default)]
pub(super) struct Giving(Mutex<BTreeSet<String>>);

/// One of them, until this is dropped.
pub(super) struct Given<'a> {
    all: &'a Giving,
    name: String,
}

impl Giving {
    /// Begins to give a volume; nothing where somebody else does.
    pub(super) fn begin(&self, volume: &str) -> Option<Given<'_>> {
        let is_new = self.0.lock().insert(volume.to_owned());
        is_new.then(|| Given { all: self, name: volume.to_owned() })
    }

    /// Whether somebody gives the volume to a claim.
    pub(super) fn has(&self, volume: &str) -> bool {
        self.0.lock().contains(volume)
    }
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_given_once_at_a_time() {
        let giving = Giving::default();
        let given = giving.begin("a");
        assert!(giving.has("a") && giving.begin("a").is_none() && giving.begin("b").is_some());
        drop(given);
        assert!(!giving.has("a") && !giving.has("b"));
        assert!(giving.begin("a").is_some());
    }
}
