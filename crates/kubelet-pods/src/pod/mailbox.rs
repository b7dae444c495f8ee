//! What happened to pods since somebody last asked, by name: the newest state, and the pod of that name that went.
//!
//! An informer tells faster than the sync loop may listen. Events of one name come together here, so that what waits is
//! never more than the pods that the listener knows and those that there are.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use api_types::core_v1::Pod;
use client::{Change, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::PodEvent;

/// Takes changes from a handler, hands them over together.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<BTreeMap<ObjectKey, Letter>>,
    arrived: Notify,
}

/// What is to be told of one name.
#[derive(Default)]
struct Letter {
    /// The uid that the listener knows under this name, where that pod is gone.
    gone: Option<String>,
    now: Option<Arc<Pod>>,
    /// Whether the listener has never heard of the pod that is there now.
    is_new: bool,
}

impl Mailbox {
    pub(crate) fn put(&self, change: &Change<Pod>) {
        let key = change.key();
        let mut letters = self.letters.lock();
        let letter = letters.entry(key.clone()).or_default();
        match change {
            Change::Added { object, .. } => {
                letter.is_new = true;
                letter.now = Some(Arc::clone(object));
            }
            Change::Updated { new, .. } => letter.now = Some(Arc::clone(new)),
            Change::Deleted { object, .. } => {
                letter.now = None;
                // Who came and went unheard is nobody's loss.
                if !mem::take(&mut letter.is_new) {
                    letter.gone = Some(object.metadata.uid.clone());
                }
            }
        }
        if letter.now.is_none() && letter.gone.is_none() {
            letters.remove(&key);
        }
        drop(letters);
        self.arrived.notify_one();
    }

    /// Everything since the last time, in order of the names; of one name the pod that went first.
    pub(crate) fn take(&self) -> Vec<PodEvent> {
        let letters = mem::take(&mut *self.letters.lock());
        let events = |letter: Letter| letter.gone.map(PodEvent::Gone).into_iter().chain(letter.now.map(PodEvent::Is));
        letters.into_values().flat_map(events).collect()
    }

    /// Resolves when something has arrived since it last did.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(text: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        let (name, rest) = text.split_once('/').unwrap();
        let (uid, version) = rest.split_once('.').unwrap_or((rest, ""));
        pod.metadata.name = name.into();
        pod.metadata.uid = uid.into();
        pod.metadata.resource_version = version.into();
        Arc::new(pod)
    }

    /// A change as `sign name/uid.version`: `+` for a pod that came, `~` for one that changed, `-` for one that went.
    fn change(text: &str) -> Change<Pod> {
        let object = pod(&text[1..]);
        match &text[..1] {
            "+" => Change::Added { object, initial: false },
            "~" => Change::Updated { old: Arc::clone(&object), new: object },
            _ => Change::Deleted { object, stale: false },
        }
    }

    fn told(mailbox: &Mailbox) -> Vec<String> {
        let text = |event: PodEvent| match event {
            PodEvent::Is(pod) => {
                let meta = &pod.metadata;
                format!("{}/{}.{}", meta.name, meta.uid, meta.resource_version)
            }
            PodEvent::Gone(uid) => format!("-{uid}"),
        };
        mailbox.take().into_iter().map(text).collect()
    }

    #[test]
    fn events_of_a_name_come_together() {
        let cases: [(&str, &[&str], &[&str]); 9] = [
            ("nothing", &[], &[]),
            ("in order of names", &["~b/2.1", "+a/1.1"], &["a/1.1", "b/2.1"]),
            ("the latest wins", &["~a/1.1", "~a/1.2", "~a/1.3"], &["a/1.3"]),
            ("new, then changed", &["+a/1.1", "~a/1.2"], &["a/1.2"]),
            ("a known one goes", &["~a/1.1", "-a/1.2"], &["-1"]),
            ("came and went", &["+a/1.1", "~a/1.2", "-a/1.3"], &[]),
            ("another of the name", &["-a/1.1", "+a/2.1", "~a/2.2"], &["-1", "a/2.2"]),
            ("many others of the name", &["-a/1.1", "+a/2.1", "-a/2.2", "+a/3.1"], &["-1", "a/3.1"]),
            ("the last of them went", &["-a/1.1", "+a/2.1", "-a/2.2", "+a/3.1", "-a/3.2"], &["-1"]),
        ];
        for (name, changes, expected) in cases {
            let mailbox = Mailbox::default();
            changes.iter().for_each(|text| mailbox.put(&change(text)));
            assert_eq!(told(&mailbox), expected, "{name}");
            assert!(mailbox.take().is_empty(), "{name}: told twice");
        }
    }

    #[test]
    fn who_was_told_of_is_known() {
        let mailbox = Mailbox::default();
        mailbox.put(&change("+a/1.1"));
        assert_eq!(told(&mailbox), ["a/1.1"]);
        mailbox.put(&change("-a/1.2"));
        assert_eq!(told(&mailbox), ["-1"]);
    }

    #[test]
    fn a_listener_that_does_not_listen_costs_no_more_than_the_pods() {
        let mailbox = Mailbox::default();
        for round in 0..1000 {
            mailbox.put(&change(&format!("+a/{round}.1")));
            mailbox.put(&change(&format!("~a/{round}.2")));
            mailbox.put(&change(&format!("-a/{round}.3")));
            assert_eq!(mailbox.letters.lock().len(), 0);
        }
    }
}
