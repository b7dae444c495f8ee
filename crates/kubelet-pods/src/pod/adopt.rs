//! Static pods that another kubelet started.
//!
//! A static pod's uid is a hash of a dump of upstream's internal Go types ([`super::uid`]), which differ from one minor
//! release to the next. A kubelet that takes over from one of another release would stop what runs and start the same anew. Instead,
//! a pod that runs from a manifest of this name keeps its uid, if the file is as it was when the pod was started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api_types::core_v1::Pod;

use super::{CONFIG_HASH, CONFIG_SOURCE, Source, SourceSet};
use crate::runtime::record::RuntimePod;

/// The uids of adopted pods, by those that this kubelet would have given them.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    uids: BTreeMap<String, String>,
}

impl Adopted {
    /// Gives pods of a set the uids under which they run. `strangers` are pods of the runtime that no worker knows.
    pub(crate) fn apply(&mut self, set: &mut SourceSet, strangers: &[Arc<RuntimePod>]) {
        if set.source != Source::File {
            return;
        }
        let own: BTreeSet<String> = set.pods.iter().map(|pod| pod.metadata.uid.clone()).collect();
        self.uids.retain(|uid, _| own.contains(uid));
        for pod in &mut set.pods {
            let uid = pod.metadata.uid.clone();
            if !self.uids.contains_key(&uid)
                && let Some(written) = set.written.get(&uid)
                && let Some(running) = strangers.iter().find(|running| is_started_from(running, pod, *written))
            {
                tracing::info!(pod = %pod.metadata.name, uid = %running.uid, "Adopting a static pod that runs already");
                self.uids.insert(uid.clone(), running.uid.clone());
            }
            if let Some(adopted) = self.uids.get(&uid) {
                let pod = Arc::make_mut(pod);
                pod.metadata.uid.clone_from(adopted);
                pod.metadata.annotations.insert(CONFIG_HASH.to_owned(), adopted.clone());
            }
        }
    }
}

/// Whether a pod runs from a file that had the pod's name and is the same since.
fn is_started_from(running: &RuntimePod, pod: &Pod, written: SystemTime) -> bool {
    let meta = &pod.metadata;
    let same_name = running.name == meta.name && running.namespace == meta.namespace && running.uid != meta.uid;
    // A uid that the manifest states is nobody's to change.
    let computed = meta.annotations.get(CONFIG_HASH) == Some(&meta.uid);
    same_name
        && computed
        && running.sandboxes.iter().any(|sandbox| {
            let started = UNIX_EPOCH + Duration::from_nanos(u64::try_from(sandbox.created_at).unwrap_or_default());
            sandbox.ready
                && started > written
                && sandbox.annotations.get(CONFIG_SOURCE).is_some_and(|source| source == Source::File.name())
                && sandbox.annotations.get(CONFIG_HASH) == Some(&running.uid)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::record::SandboxRecord;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn running(name: &str, ready: bool, source: &str, hash: &str) -> Arc<RuntimePod> {
        let annotations = [(CONFIG_SOURCE, source), (CONFIG_HASH, hash)];
        let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let created_at = 100_000_000_000;
        let sandbox = SandboxRecord { created_at, annotations, ..SandboxRecord::example("s", ready) };
        Arc::new(RuntimePod {
            uid: "theirs".into(),
            name: name.into(),
            namespace: "default".into(),
            sandboxes: vec![sandbox],
            ..RuntimePod::default()
        })
    }

    fn set(uid: &str, written: SystemTime) -> SourceSet {
        let mut pod = Pod::default();
        pod.metadata.name = "web-n".into();
        pod.metadata.namespace = "default".into();
        pod.metadata.uid = uid.into();
        pod.metadata.annotations.insert(CONFIG_HASH.to_owned(), uid.into());
        SourceSet {
            source: Source::File,
            pods: vec![Arc::new(pod)],
            whole: true,
            written: [(uid.to_owned(), written)].into(),
        }
    }

    #[test]
    fn a_pod_that_runs_from_the_same_file_keeps_its_uid() {
        let mut adopted = Adopted::default();
        let mut first = set("ours", at(99));
        adopted.apply(&mut first, &[running("web-n", true, "file", "theirs")]);
        assert_eq!(first.pods[0].metadata.uid, "theirs");
        assert_eq!(first.pods[0].metadata.annotations[CONFIG_HASH], "theirs");
        let mut again = set("ours", at(99));
        adopted.apply(&mut again, &[]);
        assert_eq!(again.pods[0].metadata.uid, "theirs", "for as long as the manifest stays");
        let mut edited = set("edited", at(120));
        adopted.apply(&mut edited, &[running("web-n", true, "file", "theirs")]);
        assert_eq!(edited.pods[0].metadata.uid, "edited");
        let mut back = set("ours", at(130));
        adopted.apply(&mut back, &[]);
        assert_eq!(back.pods[0].metadata.uid, "ours", "that one has gone since");
    }

    #[test]
    fn nothing_else_is_adopted() {
        let cases = [
            ("the file is newer", at(101), running("web-n", true, "file", "theirs")),
            ("another name", at(99), running("other-n", true, "file", "theirs")),
            ("it has ended", at(99), running("web-n", false, "file", "theirs")),
            ("not from a file", at(99), running("web-n", true, "api", "theirs")),
            ("no uid of a manifest", at(99), running("web-n", true, "file", "another")),
        ];
        for (why, written, stranger) in cases {
            let mut set = set("ours", written);
            Adopted::default().apply(&mut set, &[stranger]);
            assert_eq!(set.pods[0].metadata.uid, "ours", "{why}");
        }
        let mut stated = set("ours", at(99));
        let pod = Arc::make_mut(&mut stated.pods[0]);
        pod.metadata.annotations.insert(CONFIG_HASH.to_owned(), "stated".into());
        Adopted::default().apply(&mut stated, &[running("web-n", true, "file", "theirs")]);
        assert_eq!(stated.pods[0].metadata.uid, "ours");
    }
}
