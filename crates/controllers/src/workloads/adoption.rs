//! Taking over orphans that match and letting go of what no longer does.

use std::sync::Arc;

use api_machinery::labels::Selector;
use api_machinery::object::Kind;
use api_machinery::time::Time;
use client::{ApiObject, Client, ClientError};
use controller::{Claim, ReconcileError, adopt_patch, claim, controller_ref, release_patch};

use super::owners::Owner;

/// One pass over candidates. The owner is looked at live before the first adoption, and once only.
pub(crate) struct Claims<'a, O> {
    client: &'a Client,
    owner: &'a O,
    selector: &'a Selector,
    finalizers: &'a [&'a str],
    /// Whether the owner may adopt; nothing before it was asked.
    may_adopt: Option<Result<(), Arc<NotAdopting>>>,
    /// The versions that adoptions left objects at; no cache need have them yet.
    adopted: Vec<String>,
}

impl<'a, O: Owner> Claims<'a, O> {
    /// A pass for `owner`. Adopted objects get `finalizers`, released ones lose them.
    pub(crate) fn new(client: &'a Client, owner: &'a O, selector: &'a Selector, finalizers: &'a [&'a str]) -> Self {
        Self { client, owner, selector, finalizers, may_adopt: None, adopted: Vec::new() }
    }

    /// The candidates that are the owner's, with those just adopted as the server answered them.
    ///
    /// # Errors
    /// The failures, after every candidate was tried.
    pub(crate) async fn run<C: Kind + ApiObject>(
        &mut self,
        candidates: Vec<Arc<C>>,
    ) -> Result<Vec<Arc<C>>, ReconcileError> {
        let (mut mine, mut errors) = (Vec::new(), Vec::new());
        for candidate in candidates {
            let matches = self.selector.matches(&candidate.meta().labels);
            match claim(candidate.meta(), self.owner.meta(), matches) {
                Claim::Keep => mine.push(candidate),
                Claim::Ignore => {}
                Claim::Release => errors.extend(self.release(&*candidate).await.err()),
                Claim::Adopt => match self.adopt(&*candidate).await {
                    Ok(Some(adopted)) => {
                        self.adopted.push(adopted.meta().resource_version.clone());
                        mine.push(Arc::new(adopted));
                    }
                    Ok(None) => {}
                    Err(error) => errors.push(error),
                },
            }
        }
        ReconcileError::join(errors).map(|()| mine)
    }

    /// The versions of what was adopted.
    pub(crate) fn adopted(&self) -> &[String] {
        &self.adopted
    }

    /// Lets an object go that is the owner's but cannot be, whatever its labels say; not when the owner goes itself.
    ///
    /// # Errors
    /// What the server refuses.
    pub(crate) async fn let_go<C: Kind + ApiObject>(&self, object: &C) -> Result<(), ReconcileError> {
        if self.owner.meta().deletion_timestamp.is_some() { Ok(()) } else { self.release(object).await }
    }

    async fn release<C: Kind + ApiObject>(&self, object: &C) -> Result<(), ReconcileError> {
        let meta = object.meta();
        let patch = release_patch(&meta.uid, &self.owner.meta().uid, self.finalizers);
        match self.client.namespaced::<C>(&meta.namespace).patch(&meta.name, &patch).await {
            // Gone, or no longer the object that was meant.
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            outcome => Ok(outcome.map(drop)?),
        }
    }

    async fn adopt<C: Kind + ApiObject>(&mut self, object: &C) -> Result<Option<C>, ReconcileError> {
        let meta = object.meta();
        if let Err(cause) = self.recheck().await {
            let (kind, namespace, name, uid) = (C::TYPE.kind, &meta.namespace, &meta.name, &meta.uid);
            return Err(ReconcileError::failed(format!("can't adopt {kind} {namespace}/{name} ({uid}): {cause}")));
        }
        let patch = adopt_patch(&meta.uid, &controller_ref::<O>(self.owner.meta()), self.finalizers);
        match self.client.namespaced::<C>(&meta.namespace).patch(&meta.name, &patch).await {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => Ok(Some(outcome?)),
        }
    }

    async fn recheck(&mut self) -> Result<(), Arc<NotAdopting>> {
        if self.may_adopt.is_none() {
            let meta = self.owner.meta();
            let live = self.client.namespaced::<O>(&meta.namespace).get(&meta.name).await;
            self.may_adopt = Some(judge(self.owner, live).map_err(Arc::new));
        }
        self.may_adopt.clone().unwrap_or(Ok(()))
    }
}

/// Why an owner may not adopt.
#[derive(Debug, thiserror::Error)]
enum NotAdopting {
    #[error("can't recheck DeletionTimestamp: {0}")]
    Unknown(#[from] ClientError),
    #[error("original {kind} {owner} is gone: got uid {got}, wanted {wanted}")]
    Gone { kind: &'static str, owner: String, got: String, wanted: String },
    #[error("{owner} has just been deleted at {at}")]
    Deleted { owner: String, at: Time },
}

/// Whether the owner, as it is on the server, may still adopt.
fn judge<O: Owner>(owner: &O, live: Result<O, ClientError>) -> Result<(), NotAdopting> {
    let live = live?;
    let (wanted, got) = (owner.meta(), live.meta());
    let owner = format!("{}/{}", wanted.namespace, wanted.name);
    if got.uid != wanted.uid {
        let (got, wanted) = (got.uid.clone(), wanted.uid.clone());
        return Err(NotAdopting::Gone { kind: O::TYPE.kind, owner, got, wanted });
    }
    got.deletion_timestamp.map_or(Ok(()), |at| Err(NotAdopting::Deleted { owner, at }))
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::{LabelSelector, ObjectMeta};
    use api_types::apps_v1::ReplicaSet;
    use api_types::core_v1::Pod;
    use client::fake::FakeServer;
    use component_helpers::selectors::selector_of;
    use serde_json::json;

    use super::*;

    fn meta(name: &str, uid: &str) -> ObjectMeta {
        ObjectMeta { name: name.into(), namespace: "ns".into(), uid: uid.into(), ..ObjectMeta::default() }
    }

    fn set(uid: &str) -> ReplicaSet {
        let mut set = ReplicaSet { metadata: meta("web", uid), ..ReplicaSet::default() };
        let labels = [("app".to_owned(), "web".to_owned())].into();
        set.spec.selector = Some(LabelSelector { match_labels: labels, ..LabelSelector::default() });
        set
    }

    #[test]
    fn only_the_same_live_owner_may_adopt() {
        let mut dying = set("u");
        dying.metadata.deletion_timestamp = Some(Time::from_unix_seconds(0));
        let refused = |live| judge(&set("u"), Ok(live)).unwrap_err().to_string();
        assert!(judge(&set("u"), Ok(set("u"))).is_ok());
        assert_eq!(refused(set("v")), "original ReplicaSet ns/web is gone: got uid v, wanted u");
        assert_eq!(refused(dying), "ns/web has just been deleted at 1970-01-01T00:00:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_replaced_owner_adopts_nothing() {
        let server = FakeServer::new();
        let stored = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "ns", "uid": "new"}});
        server.put("apps/v1/replicasets", stored);
        let (client, owner) = (server.client(), set("old"));
        let selector = selector_of(owner.spec.selector.as_ref()).unwrap();
        let mut pod = Pod { metadata: meta("a", "p"), ..Pod::default() };
        pod.metadata.labels.insert("app".into(), "web".into());
        let mut claims = Claims::new(&client, &owner, &selector, &[]);
        let error = claims.run(vec![Arc::new(pod.clone()), Arc::new(pod)]).await.unwrap_err().to_string();
        assert!(error.contains("can't adopt Pod ns/a (p): original ReplicaSet ns/web is gone"), "{error}");
        assert_eq!(server.requests().len(), 1, "asked once, patched never");
    }
}
