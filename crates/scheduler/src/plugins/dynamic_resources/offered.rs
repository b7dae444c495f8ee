//! The devices that drivers offer, sorted once until that changes.

use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use api_types::resource_v1::ResourceSlice;
use api_types::resource_v1alpha3::DeviceTaintRule;
use component_base::Gates;
use component_base::shared_gates::DEVICE_TAINT_RULES;
use dra::Slices;
use parking_lot::Mutex;

use crate::listers::{Lister, Listers};

/// All slices, sorted when they are first asked for.
pub(in crate::plugins) struct Offered {
    lister: Lister<ResourceSlice>,
    /// Rules that give devices taints; none where they do not count.
    rules: Option<Lister<DeviceTaintRule>>,
    sorted: Mutex<Option<Arc<Slices>>>,
}

impl Offered {
    /// What the listers have, now and from now on.
    pub(in crate::plugins) fn of(listers: &Listers, gates: &Gates) -> Arc<Self> {
        let rules = gates.enabled(DEVICE_TAINT_RULES).then(|| listers.of());
        let offered = Arc::new(Self { lister: listers.of(), rules, sorted: Mutex::default() });
        offered.follow(&offered.lister);
        offered.rules.iter().for_each(|rules| offered.follow(rules));
        offered
    }

    fn follow<T: Kind + Object>(self: &Arc<Self>, lister: &Lister<T>) {
        // Profiles are also built to see whether they can be.
        let to = Arc::downgrade(self);
        lister.on_change(move |_| {
            if let Some(to) = to.upgrade() {
                *to.sorted.lock() = None;
            }
        });
    }

    /// What there is now.
    pub(in crate::plugins) fn slices(&self) -> Arc<Slices> {
        let mut sorted = self.sorted.lock();
        Arc::clone(sorted.get_or_insert_with(|| {
            let slices = self.lister.list();
            Arc::new(match &self.rules {
                Some(rules) => Slices::of(&dra::tainted(&slices, &rules.list())),
                None => Slices::of(&slices),
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_objects::object;

    #[test]
    fn slices_are_sorted_anew_when_they_change() {
        let listers = Listers::in_memory();
        let lister = listers.of::<ResourceSlice>();
        let offered = Offered::of(&listers, &Gates::default().with(DEVICE_TAINT_RULES, true));
        let before = offered.slices();
        assert!(Arc::ptr_eq(&before, &offered.slices()));
        let slice = json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}});
        lister.put(Arc::new(object(slice)));
        let tainted = offered.slices();
        assert!(!Arc::ptr_eq(&before, &tainted));
        let rule = json!({"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}});
        listers.of::<DeviceTaintRule>().put(Arc::new(object(rule)));
        assert!(!Arc::ptr_eq(&tainted, &offered.slices()));
    }
}
