//! What a request's plugins have looked up.

use std::any::{Any, TypeId};
use std::sync::Arc;

use parking_lot::Mutex;

/// What plugins looked up in a request's mutating pass, so that its validating pass need not. There are few of them in a
/// request. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Findings(Arc<Mutex<Vec<Finding>>>);

#[derive(Debug)]
struct Finding {
    type_id: TypeId,
    name: String,
    value: Arc<dyn Any + Send + Sync>,
}

impl Findings {
    /// What was found under this name, if something was.
    pub(crate) fn get<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        let all = self.0.lock();
        let found = all.iter().find(|own| own.type_id == TypeId::of::<T>() && own.name == name)?;
        Arc::clone(&found.value).downcast().ok()
    }

    /// Keeps what was found.
    pub(crate) fn note<T: Any + Send + Sync>(&self, name: &str, value: Arc<T>) {
        self.0.lock().push(Finding { type_id: TypeId::of::<T>(), name: name.to_owned(), value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_kept_by_type_and_name() {
        let findings = Findings::default();
        findings.clone().note("a", Arc::new(1_u8));
        assert_eq!(findings.get::<u8>("a").as_deref(), Some(&1));
        assert!(findings.get::<u8>("b").is_none() && findings.get::<u16>("a").is_none());
    }
}
