//! Pods by their labels, so that the pods of a selector are found without a walk over a whole namespace, and the selectors
//! by the same keys, so that those of a pod are. Thousands of autoscalers in one namespace cost what their own pods do.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::labels::Selector;
use api_types::core_v1::Pod;
use client::{Change, ObjectKey};
use parking_lot::Mutex;

use super::anchors::{Anchor, Anchors};

/// Autoscalers of a namespace from which on they read together.
const SHARING: usize = 4;

/// The pods that there are, and what selects them.
#[derive(Default)]
pub(super) struct Pods {
    anchors: Anchors,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    pods: HashMap<ObjectKey, u32>,
    /// By number; numbers are used again.
    slots: Vec<Option<Arc<Pod>>>,
    free: Vec<u32>,
    by_anchor: HashMap<Anchor, Vec<u32>>,
    /// The selectors of autoscalers as last seen, with the anchors that they were found under.
    selectors: HashMap<ObjectKey, (Selector, Anchor)>,
    selecting: HashMap<Anchor, BTreeSet<ObjectKey>>,
    /// How many selectors there are in each namespace.
    scalers: HashMap<String, usize>,
}

impl Pods {
    /// Follows the informer.
    pub(super) fn observe(&self, change: &Change<Pod>) {
        let mut inner = self.inner.lock();
        match change {
            Change::Added { object, .. } => inner.add(change.key(), object, self.anchors.of(&object.metadata)),
            Change::Updated { old, new } if old.metadata.labels == new.metadata.labels => {
                inner.exchange(&change.key(), new);
            }
            Change::Updated { old, new } => {
                inner.remove(&change.key(), self.anchors.of(&old.metadata));
                inner.add(change.key(), new, self.anchors.of(&new.metadata));
            }
            Change::Deleted { object, .. } => inner.remove(&change.key(), self.anchors.of(&object.metadata)),
        }
    }

    /// The pods of a namespace that a selector selects, by name.
    pub(super) fn selected(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        let inner = self.inner.lock();
        let anchor = self.anchors.rarest(namespace, selector, |anchor| inner.pods_under(anchor).len());
        let pods = inner.pods_under(&anchor).iter().filter_map(|number| inner.slots.get(*number as usize)?.as_ref());
        let is_selected =
            |pod: &&Arc<Pod>| pod.metadata.namespace == namespace && selector.matches(&pod.metadata.labels);
        let mut pods: Vec<_> = pods.filter(is_selected).cloned().collect();
        drop(inner);
        pods.sort_unstable_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        pods
    }

    /// Remembers the selector of an autoscaler in place of its former one.
    pub(super) fn register(&self, scaler: &ObjectKey, selector: &Selector) {
        let mut inner = self.inner.lock();
        if inner.selectors.get(scaler).is_some_and(|(known, _)| known == selector) {
            return;
        }
        inner.forget(scaler);
        let anchor = self.anchors.rarest(&scaler.namespace, selector, |anchor| inner.pods_under(anchor).len());
        inner.selectors.insert(scaler.clone(), (selector.clone(), anchor));
        inner.selecting.entry(anchor).or_default().insert(scaler.clone());
        *inner.scalers.entry(scaler.namespace.clone()).or_default() += 1;
    }

    /// Whether an autoscaler of a namespace has a selector.
    pub(super) fn are_looked_at(&self, namespace: &str) -> bool {
        self.inner.lock().scalers.contains_key(namespace)
    }

    /// Whether what all pods of a namespace use is soon wanted by its autoscalers anyway, where one of them has so many.
    pub(super) fn are_shared(&self, namespace: &str, selected: usize) -> bool {
        let inner = self.inner.lock();
        let scalers = inner.scalers.get(namespace).copied().unwrap_or_default();
        let pods = inner.pods_under(&self.anchors.whole(namespace)).len();
        scalers >= SHARING && selected.saturating_mul(scalers).saturating_mul(2) >= pods
    }

    /// Forgets an autoscaler that is gone.
    pub(super) fn forget(&self, scaler: &ObjectKey) {
        self.inner.lock().forget(scaler);
    }

    /// The autoscalers whose selectors select any of these pods.
    pub(super) fn selecting(&self, pods: &[Arc<Pod>]) -> BTreeSet<ObjectKey> {
        let inner = self.inner.lock();
        let mut found = BTreeSet::new();
        for pod in pods {
            for scaler in
                self.anchors.of(&pod.metadata).iter().filter_map(|anchor| inner.selecting.get(anchor)).flatten()
            {
                let selects = inner.selectors.get(scaler).is_some_and(|(selector, _)| {
                    scaler.namespace == pod.metadata.namespace && selector.matches(&pod.metadata.labels)
                });
                if selects && !found.contains(scaler) {
                    found.insert(scaler.clone());
                }
            }
        }
        found
    }
}

impl Inner {
    /// The numbers of the pods with an anchor.
    fn pods_under(&self, anchor: &Anchor) -> &[u32] {
        self.by_anchor.get(anchor).map_or(&[][..], Vec::as_slice)
    }

    fn add(&mut self, key: ObjectKey, pod: &Arc<Pod>, anchors: Vec<Anchor>) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(slot) = self.slots.get_mut(number as usize) {
            *slot = Some(Arc::clone(pod));
        }
        self.pods.insert(key, number);
        for anchor in anchors {
            self.by_anchor.entry(anchor).or_default().push(number);
        }
    }

    fn exchange(&mut self, key: &ObjectKey, pod: &Arc<Pod>) {
        let number = self.pods.get(key);
        if let Some(slot) = number.and_then(|number| self.slots.get_mut(*number as usize)) {
            *slot = Some(Arc::clone(pod));
        }
    }

    fn remove(&mut self, key: &ObjectKey, anchors: Vec<Anchor>) {
        let Some(number) = self.pods.remove(key) else { return };
        if let Some(slot) = self.slots.get_mut(number as usize) {
            *slot = None;
        }
        for anchor in anchors {
            let Some(numbers) = self.by_anchor.get_mut(&anchor) else { continue };
            if let Some(at) = numbers.iter().position(|own| *own == number) {
                numbers.swap_remove(at);
            }
            if numbers.is_empty() {
                self.by_anchor.remove(&anchor);
            }
        }
        self.free.push(number);
    }

    fn forget(&mut self, scaler: &ObjectKey) {
        let Some((_, anchor)) = self.selectors.remove(scaler) else { return };
        if let Some(scalers) = self.selecting.get_mut(&anchor) {
            scalers.remove(scaler);
            if scalers.is_empty() {
                self.selecting.remove(&anchor);
            }
        }
        if let Some(scalers) = self.scalers.get_mut(&scaler.namespace) {
            *scalers -= 1;
            if *scalers == 0 {
                self.scalers.remove(&scaler.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Arc<Pod> {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = (namespace.into(), name.into());
        pod.metadata.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Arc::new(pod)
    }

    fn added(object: Arc<Pod>) -> Change<Pod> {
        Change::Added { object, initial: false }
    }

    fn names(pods: &Pods, namespace: &str, selector: &str) -> Vec<String> {
        let pods = pods.selected(namespace, &Selector::parse(selector).unwrap());
        pods.iter().map(|pod| pod.metadata.name.clone()).collect()
    }

    #[test]
    fn pods_are_found_by_any_selector() {
        let pods = Pods::default();
        let (b, a) = (pod("ns", "b", &[("app", "web"), ("env", "prod")]), pod("ns", "a", &[("app", "web")]));
        for one in [&b, &a, &pod("ns", "c", &[("env", "prod")]), &pod("other", "d", &[("app", "web")])] {
            pods.observe(&added(Arc::clone(one)));
        }
        for (selector, expected) in [
            ("app=web", vec!["a", "b"]),
            ("app=web,env=prod", vec!["b"]),
            ("app in (web)", vec!["a", "b"]),
            ("env", vec!["b", "c"]),
            ("!env", vec!["a"]),
            ("app=none", vec![]),
            ("", vec!["a", "b", "c"]),
        ] {
            assert_eq!(names(&pods, "ns", selector), expected, "{selector}");
        }
        let moved = pod("ns", "b", &[("app", "db")]);
        pods.observe(&Change::Updated { old: b, new: moved });
        pods.observe(&Change::Deleted { object: a, stale: false });
        assert_eq!(names(&pods, "ns", "app=web"), [] as [&str; 0]);
        assert_eq!(names(&pods, "ns", "app=db"), ["b"]);
        pods.observe(&added(pod("ns", "e", &[("app", "web")])));
        assert_eq!(names(&pods, "ns", "app=web"), ["e"], "a number that was free is used again");
    }

    #[test]
    fn the_latest_state_of_a_pod_is_seen() {
        let pods = Pods::default();
        let old = pod("ns", "a", &[("app", "web")]);
        pods.observe(&added(Arc::clone(&old)));
        let mut new = Pod::clone(&old);
        new.status.phase = "Failed".into();
        pods.observe(&Change::Updated { old, new: Arc::new(new) });
        assert_eq!(pods.selected("ns", &Selector::parse("app=web").unwrap())[0].status.phase, "Failed");
    }

    #[test]
    fn who_selects_the_same_pods_is_found() {
        let pods = Pods::default();
        let web = pod("ns", "a", &[("app", "web"), ("env", "prod")]);
        pods.observe(&added(Arc::clone(&web)));
        let key = |name: &str| ObjectKey::new("ns", name);
        let selecting = || pods.selecting(std::slice::from_ref(&web)).into_iter().collect::<Vec<_>>();
        for (name, selector) in [("one", "app=web"), ("two", "env in (prod,test)"), ("three", "app=db")] {
            pods.register(&key(name), &Selector::parse(selector).unwrap());
        }
        pods.register(&ObjectKey::new("other", "one"), &Selector::parse("app=web").unwrap());
        assert_eq!(selecting(), [key("one"), key("two")]);
        pods.register(&key("one"), &Selector::parse("app=db").unwrap());
        assert_eq!(selecting(), [key("two")]);
        pods.forget(&key("two"));
        assert_eq!(selecting(), []);
    }
}
