//! The deprecated rollback annotation: back to the template of an older revision.

use api_types::apps_v1::constants::{
    DEFAULT_DEPLOYMENT_UNIQUE_LABEL_KEY as HASH_LABEL, DEPRECATED_ROLLBACK_TO as ROLLBACK_TO,
};
use api_types::apps_v1::{Deployment, ReplicaSet};

use super::plan::{Actions, Draft, Step, same_template};
use super::revisions;

/// What becomes of a request to roll back.
pub(super) struct Rollback {
    /// The deployment to write; the request is gone from it.
    pub deployment: Deployment,
    /// Whether the template was exchanged.
    pub done: bool,
    /// The reason and message of the event.
    pub event: (&'static str, String),
}

/// The revision that the annotation asks for; 0 for the previous one.
pub(super) fn asked_for(deployment: &Deployment) -> Option<i64> {
    deployment.metadata.annotations.get(ROLLBACK_TO)?.parse().ok()
}

impl Draft<'_> {
    /// Replaces the template, or says why not. The new replica set must be there, so that it keeps its revision.
    pub(super) fn roll_back(mut self, revision: i64) -> Step {
        self.sync_new();
        if self.new.is_none() {
            return self.make_new();
        }
        let outcome = self.outcome(revision);
        let deployment = self.observed.deployment.clone();
        Step::Act(Box::new(Actions { rollback: Some(outcome), deployment, ..Actions::default() }))
    }

    fn outcome(&self, revision: i64) -> Rollback {
        let mut deployment = Deployment::clone(&self.observed.stored);
        deployment.metadata.annotations.remove(ROLLBACK_TO);
        let revision = if revision == 0 { revisions::previous(&self.sets) } else { revision };
        let not_found = "DeploymentRollbackRevisionNotFound";
        if revision == 0 {
            let event = (not_found, "Unable to find last revision.".to_owned());
            return Rollback { deployment, done: false, event };
        }
        let is_it = |set: &&ReplicaSet| revisions::revision(&set.metadata.annotations) == Ok(revision);
        let Some(set) = self.sets.iter().find(is_it) else {
            let event = (not_found, "Unable to find the revision to rollback to.".to_owned());
            return Rollback { deployment, done: false, event };
        };
        let name = deployment.metadata.name.clone();
        if same_template(&set.spec.template, &deployment.spec.template) {
            let message = format!("The rollback revision contains the same template as current deployment \"{name}\"");
            return Rollback { deployment, done: false, event: ("DeploymentRollbackTemplateUnchanged", message) };
        }
        take_template(&mut deployment, set);
        let event = ("DeploymentRollback", format!("Rolled back deployment \"{name}\" to revision {revision}"));
        Rollback { deployment, done: true, event }
    }
}

/// The template without the hash, and the annotations that the revision was made with.
fn take_template(deployment: &mut Deployment, set: &ReplicaSet) {
    deployment.spec.template = set.spec.template.clone();
    deployment.spec.template.metadata.labels.remove(HASH_LABEL);
    let annotations = &mut deployment.metadata.annotations;
    annotations.retain(|key, _| revisions::stays(key));
    let theirs = set.metadata.annotations.iter().filter(|(key, _)| !revisions::stays(key));
    annotations.extend(theirs.map(|(key, value)| (key.clone(), value.clone())));
}
