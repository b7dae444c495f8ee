//! Pods of one workload look alike to each other's affinity and spreading: same namespace, labels and affinity. Such a
//! class is interned, so that a node counts its pods by class and a selector is tried once for a class, not for
//! every pod.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_machinery::json;
use api_types::core_v1::Pod;
use parking_lot::Mutex;

use crate::pod_info::AffinityTerms;

/// What pods of a class have in common.
#[derive(Debug)]
pub struct PodClass {
    /// A small number, unique among the classes in use; for tables by class.
    pub id: u32,
    /// Their namespace.
    pub namespace: String,
    /// Their labels.
    pub labels: BTreeMap<String, String>,
    /// Their pod affinity.
    pub terms: AffinityTerms,
}

/// The classes in use.
#[derive(Debug, Default)]
pub struct ClassTable(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    classes: HashMap<ClassKey, Arc<PodClass>>,
    free: Vec<u32>,
    /// Ids below this have been given out.
    next: u32,
    /// When the table grows to this size, classes out of use are dropped.
    sweep_at: usize,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClassKey {
    namespace: String,
    labels: BTreeMap<String, String>,
    /// The pod affinity as JSON; equal texts mean equal rules.
    affinity: String,
}

/// The smallest size of the table at which it is swept.
const SWEEP_MINIMUM: usize = 1024;

impl ClassTable {
    /// The class of a pod.
    pub fn class_of(&self, pod: &Pod) -> Arc<PodClass> {
        let affinity = pod
            .spec
            .affinity
            .as_ref()
            .filter(|affinity| affinity.pod_affinity.is_some() || affinity.pod_anti_affinity.is_some());
        let key = ClassKey {
            namespace: pod.metadata.namespace.clone(),
            labels: pod.metadata.labels.clone(),
            affinity: affinity.map(|affinity| json::encode(affinity)).unwrap_or_default(),
        };
        let mut table = self.0.lock();
        if let Some(class) = table.classes.get(&key) {
            return Arc::clone(class);
        }
        if table.classes.len() >= table.sweep_at.max(SWEEP_MINIMUM) {
            table.sweep();
        }
        let class = Arc::new(PodClass {
            id: table.new_id(),
            namespace: key.namespace.clone(),
            labels: key.labels.clone(),
            terms: AffinityTerms::parse(affinity, &key.namespace),
        });
        table.classes.insert(key, Arc::clone(&class));
        class
    }

    /// All ids are below this.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.lock().next as usize
    }
}

impl Table {
    fn new_id(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Ids come back only when nobody, no snapshot either, knows the class any more.
    fn sweep(&mut self) {
        let free = &mut self.free;
        self.classes.retain(|_, class| {
            let used = Arc::strong_count(class) > 1;
            if !used {
                free.push(class.id);
            }
            used
        });
        self.sweep_at = self.classes.len() * 2;
    }
}

/// An answer for each class, found when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct ClassMemo<T>(Vec<Option<T>>);

impl<T: Copy> ClassMemo<T> {
    /// An empty memo.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// The answer for a class.
    pub(crate) fn get(&mut self, class: &PodClass, answer: impl FnOnce(&PodClass) -> T) -> T {
        let place = class.id as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        let known = self.0.get(place).copied().flatten();
        known.unwrap_or_else(|| {
            let fresh = answer(class);
            if let Some(slot) = self.0.get_mut(place) {
                *slot = Some(fresh);
            }
            fresh
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(value: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.labels.insert("app".into(), value.into());
        pod
    }

    #[test]
    fn equal_pods_share_a_class_and_ids_come_back() {
        let table = ClassTable::default();
        let one = table.class_of(&labelled("a"));
        assert!(Arc::ptr_eq(&one, &table.class_of(&labelled("a"))));
        assert_ne!(one.id, table.class_of(&labelled("b")).id);
        for count in 0..5 * SWEEP_MINIMUM {
            table.class_of(&labelled(&count.to_string()));
        }
        assert!(table.limit() <= SWEEP_MINIMUM + 1, "{}", table.limit());
        assert!(Arc::ptr_eq(&one, &table.class_of(&labelled("a"))));
    }

    #[test]
    fn answers_are_found_once() {
        let table = ClassTable::default();
        let class = table.class_of(&labelled("a"));
        let mut memo = ClassMemo::new();
        assert_eq!((memo.get(&class, |_| 1), memo.get(&class, |_| 2)), (1, 1));
    }
}
