//! One step of a deployment, decided from what was observed. Nothing here does I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_types::apps_v1::constants::DEFAULT_DEPLOYMENT_UNIQUE_LABEL_KEY as HASH_LABEL;
use api_types::apps_v1::constants::deployment_strategy_type::{RECREATE, ROLLING_UPDATE};
use api_types::apps_v1::{Deployment, ReplicaSet};
use api_types::core_v1::{Pod, PodTemplateSpec};
use controller::{Next, ReconcileError, controller_ref, is_controlled_by};

use super::super::template_hash::{hashed_name, template_hash};
use super::arithmetic::{new_set_size, progress_deadline, size};
use super::{progress, revisions, rollback};

/// What a step is decided from.
#[derive(Clone)]
pub(super) struct Observed {
    /// The deployment as stored.
    pub stored: Arc<Deployment>,
    /// The deployment with what this reconciliation has already found out about it.
    pub deployment: Deployment,
    /// Its replica sets.
    pub sets: Vec<ReplicaSet>,
    /// Their pods, by the uid of the set.
    pub pods: BTreeMap<String, Vec<Arc<Pod>>>,
    /// Whether the status tells how many pods are on their way out.
    pub tells_terminating: bool,
    /// The time.
    pub now: Time,
}

/// A step.
pub(super) enum Step {
    /// Create the new replica set, then look again.
    Create(Box<ReplicaSet>),
    /// Do these and be done.
    Act(Box<Actions>),
}

/// What is to be done, in this order.
#[derive(Default)]
pub(super) struct Actions {
    /// Replica sets to write.
    pub updates: Vec<SetUpdate>,
    /// Replica sets to delete.
    pub deletes: Vec<ObjectMeta>,
    /// The deployment to write after a rollback, with what to tell of it.
    pub rollback: Option<rollback::Rollback>,
    /// The deployment whose status is to be written where it differs from the stored one.
    pub deployment: Deployment,
    /// Whether the status is written also where a replica set could not be: what has come about is told then.
    pub reports_anyway: bool,
    /// When to look again.
    pub next: Option<Next>,
}

/// A replica set to write.
pub(super) struct SetUpdate {
    /// As it is to be.
    pub set: ReplicaSet,
    /// The sizes before and after, where they differ.
    pub scaled: Option<(i32, i32)>,
}

impl Observed {
    /// Takes note of the new replica set that was just created.
    pub(super) fn created(&mut self, set: ReplicaSet) {
        if progress_deadline(&self.deployment).is_some() {
            let message = format!("Created new replica set \"{}\"", set.metadata.name);
            let condition = progress::progressing("True", "NewReplicaSetCreated", message, self.now);
            progress::set(&mut self.deployment.status.conditions, condition);
        }
        self.sets.push(set);
    }

    /// Whether the replica set is this deployment's and has its template.
    pub(super) fn is_new_set(&self, set: &ReplicaSet) -> bool {
        is_controlled_by(&set.metadata, &self.deployment.metadata)
            && same_template(&set.spec.template, &self.deployment.spec.template)
    }
}

/// Whether two templates are equal but for the hash label.
pub(super) fn same_template(one: &PodTemplateSpec, two: &PodTemplateSpec) -> bool {
    let bare = |template: &PodTemplateSpec| {
        let mut template = template.clone();
        template.metadata.labels.remove(HASH_LABEL);
        template
    };
    bare(one) == bare(two)
}

/// Decides the next step.
///
/// # Errors
/// When the strategy is unknown.
pub(super) fn plan(observed: &Observed) -> Result<Step, ReconcileError> {
    let mut draft = Draft::new(observed);
    if draft.deployment.metadata.deletion_timestamp.is_some() {
        draft.sync_new();
        return Ok(draft.finish_without_progress());
    }
    progress::note_pause(&mut draft.deployment, draft.now);
    if draft.deployment.spec.paused {
        return Ok(draft.resize());
    }
    if let Some(revision) = rollback::asked_for(&draft.deployment) {
        return Ok(draft.roll_back(revision));
    }
    if draft.is_resized() {
        return Ok(draft.resize());
    }
    match draft.deployment.spec.strategy.type_.as_str() {
        RECREATE => Ok(draft.recreate()),
        ROLLING_UPDATE => Ok(draft.roll()),
        other => Err(ReconcileError::permanent(format!("unexpected deployment strategy type: {other}"))),
    }
}

/// A plan in the making: the objects as they will be once it is carried out.
pub(super) struct Draft<'a> {
    pub observed: &'a Observed,
    pub deployment: Deployment,
    /// All replica sets, oldest first.
    pub sets: Vec<ReplicaSet>,
    /// Which of them has the deployment's template.
    pub new: Option<usize>,
    pub deletes: Vec<ObjectMeta>,
    /// See [`Actions::reports_anyway`].
    pub reports_anyway: bool,
    pub now: Time,
}

impl<'a> Draft<'a> {
    fn new(observed: &'a Observed) -> Self {
        let mut sets = observed.sets.clone();
        sets.sort_by(|one, two| age(one).cmp(&age(two)));
        let template = &observed.deployment.spec.template;
        let new = sets.iter().position(|set| same_template(&set.spec.template, template));
        let (deployment, now) = (observed.deployment.clone(), observed.now);
        Self { observed, deployment, sets, new, deletes: Vec::new(), reports_anyway: false, now }
    }

    /// The replica set with the deployment's template.
    pub(super) fn new_set(&self) -> Option<&ReplicaSet> {
        self.new.and_then(|new| self.sets.get(new))
    }

    /// The places of the other replica sets, oldest first.
    pub(super) fn old(&self) -> Vec<usize> {
        (0..self.sets.len()).filter(|index| Some(*index) != self.new).collect()
    }

    /// The places of the old replica sets that should have pods.
    pub(super) fn active_old(&self) -> Vec<usize> {
        self.old().into_iter().filter(|index| size(&self.sets[*index]) > 0).collect()
    }

    /// How many pods all replica sets should have.
    pub(super) fn total_size(&self) -> i32 {
        self.sets.iter().map(size).fold(0, i32::saturating_add)
    }

    /// Brings annotations and revision of the new replica set, if there is one, up to date, and the deployment's
    /// revision with it. When the replica set changes, the deployment follows in the next reconciliation.
    pub(super) fn sync_new(&mut self) {
        let old = self.old();
        let next = revisions::highest(old.iter().map(|index| &self.sets[*index])).saturating_add(1);
        let min_ready = self.deployment.spec.min_ready_seconds;
        let Some(set) = self.new.and_then(|new| self.sets.get_mut(new)) else { return };
        if revisions::sync(&self.deployment, &mut set.metadata.annotations, next)
            || set.spec.min_ready_seconds != min_ready
        {
            set.spec.min_ready_seconds = min_ready;
            return;
        }
        if let Some(revision) = set.metadata.annotations.get(revisions::REVISION) {
            self.deployment.metadata.annotations.insert(revisions::REVISION.to_owned(), revision.clone());
        }
        let name = set.metadata.name.clone();
        if progress_deadline(&self.deployment).is_some() && progress::find(&self.deployment).is_none() {
            let message = format!("Found new replica set \"{name}\"");
            let condition = progress::progressing("True", "FoundNewReplicaSet", message, self.now);
            progress::set(&mut self.deployment.status.conditions, condition);
        }
    }

    /// The new replica set as it is to be created.
    pub(super) fn make_new(&self) -> Step {
        let deployment = &self.deployment;
        let hash = template_hash(&deployment.spec.template, deployment.status.collision_count);
        let mut set = ReplicaSet::default();
        set.metadata.name = hashed_name(&deployment.metadata.name, &hash);
        set.metadata.namespace.clone_from(&deployment.metadata.namespace);
        set.metadata.owner_references = vec![controller_ref::<Deployment>(&deployment.metadata)];
        set.spec.template = deployment.spec.template.clone();
        set.spec.template.metadata.labels.insert(HASH_LABEL.to_owned(), hash.clone());
        set.metadata.labels.clone_from(&set.spec.template.metadata.labels);
        let mut selector = deployment.spec.selector.clone().unwrap_or_default();
        selector.match_labels.insert(HASH_LABEL.to_owned(), hash);
        set.spec.selector = Some(selector);
        set.spec.min_ready_seconds = deployment.spec.min_ready_seconds;
        set.spec.replicas = Some(new_set_size(deployment, self.total_size(), 0));
        revisions::sync(
            deployment,
            &mut set.metadata.annotations,
            revisions::highest(self.sets.iter()).saturating_add(1),
        );
        revisions::note_size(deployment, &mut set.metadata.annotations);
        Step::Create(Box::new(set))
    }

    /// Tells a replica set how many pods to have; says whether that is another number than before.
    pub(super) fn set_size(&mut self, index: usize, to: i32) -> bool {
        let set = &mut self.sets[index];
        if size(set) == to {
            return false;
        }
        set.spec.replicas = Some(to);
        revisions::note_size(&self.deployment, &mut set.metadata.annotations);
        true
    }

    /// The replica sets that differ from what they were.
    fn updates(&self) -> Vec<SetUpdate> {
        let before = |set: &ReplicaSet| self.observed.sets.iter().find(|old| old.metadata.uid == set.metadata.uid);
        let changed = |set: &ReplicaSet| {
            let old = before(set)?;
            let (from, to) = (size(old), size(set));
            (old != set).then(|| SetUpdate { set: set.clone(), scaled: (from != to).then_some((from, to)) })
        };
        self.sets.iter().filter_map(changed).collect()
    }

    /// The plan, with the deployment's status as it is now.
    pub(super) fn finish(self, next: Option<Next>) -> Step {
        let updates = self.updates();
        let Self { deletes, deployment, reports_anyway, .. } = self;
        Step::Act(Box::new(Actions { updates, deletes, rollback: None, deployment, reports_anyway, next }))
    }
}

/// Oldest first, then by name.
pub(super) fn age(set: &ReplicaSet) -> (Time, &str) {
    (set.metadata.creation_timestamp, &set.metadata.name)
}
