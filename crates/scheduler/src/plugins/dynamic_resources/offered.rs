//! The devices that drivers offer, sorted once until that changes.

use std::sync::Arc;

use api_types::resource_v1::ResourceSlice;
use dra::Slices;
use parking_lot::Mutex;

use crate::listers::Lister;

/// All slices, sorted when they are first asked for.
pub(in crate::plugins) struct Offered {
    lister: Lister<ResourceSlice>,
    sorted: Mutex<Option<Arc<Slices>>>,
}

impl Offered {
    /// What a lister has, now and from now on.
    pub(in crate::plugins) fn of(lister: Lister<ResourceSlice>) -> Arc<Self> {
        let offered = Arc::new(Self { lister: lister.clone(), sorted: Mutex::default() });
        // Profiles are also built to see whether they can be.
        let to = Arc::downgrade(&offered);
        lister.on_change(move |_| {
            if let Some(to) = to.upgrade() {
                *to.sorted.lock() = None;
            }
        });
        offered
    }

    /// What there is now.
    pub(in crate::plugins) fn slices(&self) -> Arc<Slices> {
        let mut sorted = self.sorted.lock();
        Arc::clone(sorted.get_or_insert_with(|| Arc::new(Slices::of(&self.lister.list()))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listers::Listers;
    use crate::test_objects::object;

    #[test]
    fn slices_are_sorted_anew_when_they_change() {
        let lister = Listers::in_memory().of::<ResourceSlice>();
        let offered = Offered::of(lister.clone());
        let before = offered.slices();
        assert!(Arc::ptr_eq(&before, &offered.slices()));
        let slice = json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}});
        lister.put(Arc::new(object(slice)));
        assert!(!Arc::ptr_eq(&before, &offered.slices()));
    }
}
