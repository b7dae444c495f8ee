//! A look at one node: what was begun is followed up, what nobody wants is taken away, what is wanted is brought.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_machinery::value::{Value, to_value};
use api_types::core_v1::{AttachedVolume, Node, Pod};
use api_types::storage_v1::{VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec};
use client::{ClientError, ObjectKey, Patch};
use component_helpers::pod_state;
use controller::{Cx, NODE_NAME, Next, ReconcileError};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::plan::{ATTACHER_TIMEOUT, Condition, Detach, Force, Progress, Work, plan_detach, progress};
use super::state::{Elsewhere, Entry, State};
use super::target::Target;
use super::{AttachDetach, notices};
use crate::volumes::notice::Notice;

/// How many volumes of a node are brought, and how many taken away, at the same time: no volume waits for what is done with
/// another, and a node with many leaves room for the requests of others.
const AT_ONCE: usize = 16;

/// A volume that pods on a node want there.
struct Wanted {
    target: Target,
    pods: Vec<Arc<Pod>>,
}

/// The volumes that pods on a node want there, by name.
type AllWanted = BTreeMap<String, Wanted>;

/// What a look at a node came to.
#[derive(Default)]
struct Steps {
    attach: Vec<Target>,
    detach: Vec<(Target, Option<Force>)>,
    /// For the pods that want a volume, by the volume's name.
    notices: Vec<(String, Notice)>,
    /// Volumes that are on these other nodes.
    refused: Vec<(String, Vec<String>)>,
    /// When the node is to be looked at again though nothing changed.
    later: Option<Instant>,
}

impl Steps {
    fn look_again(&mut self, at: Instant) {
        self.later = Some(self.later.map_or(at, |later| later.min(at)));
    }
}

impl Entry {
    /// Whether it is attached and nothing is being done with it.
    pub(super) fn is_settled(&self) -> bool {
        self.is_confirmed && self.work == Work::Idle
    }
}

impl AttachDetach {
    pub(super) async fn sync_node(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let (name, now) = (&key.name, cx.clock.monotonic());
        let node = self.nodes.get(key);
        let wanted = self.wanted_on(name);
        let Some(mut steps) = self.decide(name, node.as_deref(), &wanted, now) else { return Ok(Next::Done) };
        self.tell(cx, &wanted, &steps);
        let reported = self.report(cx, name, node.as_deref()).await;
        let (mut detach, attach) = (std::mem::take(&mut steps.detach), std::mem::take(&mut steps.attach));
        if reported.is_err() {
            // The kubelet might still mount them.
            detach.drain(..).for_each(|(target, _)| self.put_back(name, &target));
        }
        let detach: Vec<_> = detach.iter().map(|(target, force)| self.detach(cx, name, target, *force)).collect();
        let attach: Vec<_> = attach.iter().map(|target| self.attach(cx, name, target, &wanted)).collect();
        let (detached, attached) = tokio::join!(at_once(detach), at_once(attach));
        detached.into_iter().chain(attached).flatten().for_each(|at| steps.look_again(at));
        reported?;
        if node.is_none() {
            self.state.lock().forget_if_empty(name);
        }
        let wait = steps.later.map(|later| later.saturating_duration_since(cx.clock.monotonic()));
        Ok(wait.map_or(Next::Done, Next::After))
    }

    /// What a node's pods want there. Pods that have ended want nothing.
    fn wanted_on(&self, node: &str) -> AllWanted {
        let mut wanted = AllWanted::new();
        for pod in self.pods.by_index(NODE_NAME, node).into_iter().filter(|pod| !pod_state::is_terminated(pod)) {
            for target in pod.spec.volumes.iter().filter_map(|volume| self.lookup.target(&pod, volume)) {
                let fresh = || Wanted { target: target.clone(), pods: Vec::new() };
                wanted.entry(target.name()).or_insert_with(fresh).pods.push(Arc::clone(&pod));
            }
        }
        wanted
    }

    /// Decides, and takes down what is begun. Nothing where the node's kubelet attaches volumes itself.
    fn decide(&self, name: &str, node: Option<&Node>, wanted: &AllWanted, now: Instant) -> Option<Steps> {
        let mut state = self.state.lock();
        self.fill(&mut state);
        let is_managed = state.nodes.get(name).is_some_and(|known| known.is_managed);
        if node.is_some() && !is_managed {
            return None;
        }
        let mut steps = Steps::default();
        self.follow_up(&mut state, name, now, &mut steps);
        self.take_away(&mut state, name, node, wanted, now, &mut steps);
        if node.is_some() {
            bring(&mut state, name, wanted, now, &mut steps);
        }
        Some(steps)
    }

    /// Finds out, once, what was attached before this process began.
    pub(super) fn fill(&self, state: &mut State) {
        if std::mem::replace(&mut state.is_filled, true) {
            return;
        }
        for node in self.nodes.informer().list() {
            let attached = node.status.volumes_attached.iter().filter_map(|volume| Target::of_name(&volume.name));
            attached.for_each(|target| state.put(&node.metadata.name, Entry::attached(target)));
        }
        for attachment in self.attachments.list() {
            let Some(target) = self.lookup.target_of_attachment(&attachment) else { continue };
            let node = &attachment.spec.node_name;
            match state.entry(node, &target.name()) {
                Some(entry) => entry.target = target,
                None => state.put(node, Entry::uncertain(target)),
            }
        }
    }

    pub(super) fn is_attached(&self, node: &str, entry: &Entry) -> bool {
        let attachment = self.attachments.find("", &entry.target.attachment(node));
        attachment.is_some_and(|attachment| attachment.status.attached)
    }

    /// Has the nodes looked at that wait for a volume.
    pub(super) fn wake(&self, state: &State, volume: &str) {
        state.waiting_for(volume).into_iter().for_each(|node| self.queue.add(ObjectKey::cluster(node)));
    }

    /// Takes down what became of what was begun.
    fn follow_up(&self, state: &mut State, node: &str, now: Instant, steps: &mut Steps) {
        // Most are settled, and the name of an attachment is a hash.
        let is_busy = |(_, entry): &(&String, &Entry)| entry.work != Work::Idle;
        let running = |(name, entry): (&String, &Entry)| {
            let attachment = self.attachments.find("", &entry.target.attachment(node));
            let outcome = progress(entry.work, &entry.target, attachment.as_deref(), now)?;
            Some((name.clone(), outcome))
        };
        let outcomes: Vec<(String, Progress)> = state.on(node).filter(is_busy).filter_map(running).collect();
        for (name, outcome) in outcomes {
            match outcome {
                Progress::Pending(deadline) => steps.look_again(deadline),
                outcome => {
                    self.record(state, node, &name, outcome, now, steps);
                    self.wake(state, &name);
                }
            }
        }
    }

    /// Takes down that what was begun with a volume has ended.
    fn record(&self, state: &mut State, node: &str, name: &str, outcome: Progress, now: Instant, steps: &mut Steps) {
        let Some(entry) = state.entry(node, name) else { return };
        let (began, operation) = match entry.work {
            Work::Detaching { began } => (began, "volume_detach"),
            Work::Attaching { began } => (began, "volume_attach"),
            Work::Idle => return,
        };
        let is_good = !matches!(outcome, Progress::Failed(_));
        self.metrics.ended(&entry.target, operation, is_good, now.saturating_duration_since(began));
        let was_attaching = matches!(entry.work, Work::Attaching { .. });
        match outcome {
            Progress::Attached => {
                *entry = Entry::attached(entry.target.clone());
                steps.notices.push((name.to_owned(), notices::attached(entry.target.shown())));
            }
            Progress::Failed(error) => {
                tracing::warn!(node, volume = name, operation, %error, "An operation on a volume failed");
                if was_attaching {
                    steps.notices.push((name.to_owned(), notices::failed(entry.target.shown(), &error)));
                }
                let (back_off, since) = (entry.back_off.after_failure(now), entry.unwanted_since);
                *entry = Entry { back_off, unwanted_since: since, ..Entry::uncertain(entry.target.clone()) };
            }
            Progress::Detached => state.remove(node, name),
            Progress::Pending(_) => {}
        }
    }

    /// Chooses what can be taken from a node.
    fn take_away(
        &self,
        state: &mut State,
        name: &str,
        node: Option<&Node>,
        wanted: &AllWanted,
        now: Instant,
        steps: &mut Steps,
    ) {
        let condition = Condition::of(node);
        let in_use = state.nodes.get(name).map(|known| known.in_use.clone()).unwrap_or_default();
        let volumes: Vec<String> = state.on(name).map(|(volume, _)| volume.clone()).collect();
        for volume in volumes {
            let Some(entry) = state.entry(name, &volume) else { continue };
            if let Some(wanted) = wanted.get(&volume) {
                entry.unwanted_since = None;
                entry.target = wanted.target.clone();
                continue;
            }
            if entry.work != Work::Idle {
                continue;
            }
            let since = *entry.unwanted_since.get_or_insert(now);
            if let Some(until) = entry.back_off.until(now) {
                steps.look_again(until);
                continue;
            }
            match plan_detach(since, in_use.contains(&volume), condition, self.forces_on_timeout, now) {
                Detach::Wait(until) => until.into_iter().for_each(|until| steps.look_again(until)),
                Detach::Now(force) => {
                    entry.is_reported = false;
                    entry.work = Work::Detaching { began: now };
                    steps.detach.push((entry.target.clone(), force));
                }
            }
        }
    }

    fn tell(&self, cx: &Cx, wanted: &AllWanted, steps: &Steps) {
        let pods = |volume: &str| wanted.get(volume).map(|wanted| wanted.pods.as_slice()).unwrap_or_default();
        for (volume, notice) in &steps.notices {
            pods(volume).iter().for_each(|pod| notice.tell(cx, &**pod));
        }
        for (volume, nodes) in &steps.refused {
            let users = nodes.iter().filter_map(|node| self.wanted_on(node).remove(volume));
            let users: Vec<Arc<Pod>> = users.flat_map(|wanted| wanted.pods).collect();
            let shown = wanted.get(volume).map(|wanted| wanted.target.shown()).unwrap_or_default();
            pods(volume).iter().for_each(|pod| notices::multi_attach(shown, pod, &users).tell(cx, &**pod));
        }
    }

    /// Writes into the node's status what is attached, where it says otherwise.
    async fn report(&self, cx: &Cx, name: &str, node: Option<&Node>) -> Result<(), ReconcileError> {
        let Some(node) = node else { return Ok(()) };
        let mut next: Vec<AttachedVolume> = self.state.lock().reported_on(name);
        // Volumes of other plugins are nobody's business here.
        let told = &node.status.volumes_attached;
        next.extend(told.iter().filter(|volume| Target::of_name(&volume.name).is_none()).cloned());
        let names =
            |volumes: &[AttachedVolume]| volumes.iter().map(|volume| volume.name.clone()).collect::<BTreeSet<_>>();
        if told.len() == next.len() && names(told) == names(&next) {
            return Ok(());
        }
        match cx.client.all::<Node>().patch_status(name, &attached_patch(&next)).await {
            Ok(written) => drop(self.nodes.wrote(written)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// A volume stays for now, though nobody wants it.
    fn put_back(&self, node: &str, target: &Target) {
        if let Some(entry) = self.state.lock().entry(node, &target.name()) {
            entry.work = Work::Idle;
            entry.is_reported = entry.is_confirmed;
        }
    }

    /// Takes a volume away. Says when to look at the node again.
    async fn detach(&self, cx: &Cx, node: &str, target: &Target, force: Option<Force>) -> Option<Instant> {
        let now = cx.clock.monotonic();
        if force.is_none()
            && let Err(error) = check_unused(cx, node, &target.name()).await
        {
            tracing::warn!(node, volume = target.name(), error, "DetachVolume failed");
            self.put_back(node, target);
            let mut state = self.state.lock();
            let entry = state.entry(node, &target.name())?;
            entry.back_off = entry.back_off.after_failure(now);
            return entry.back_off.until(now);
        }
        match self.delete_attachment(cx, &target.attachment(node)).await {
            Ok(is_seen) => {
                force.into_iter().for_each(|why| self.metrics.forced(why));
                Some(if is_seen { now + ATTACHER_TIMEOUT } else { now })
            }
            Err(error) => self.fail(cx, node, target, &error.to_string(), &AllWanted::new()),
        }
    }

    /// Says whether the cache knows it, so that it will tell when it is gone.
    async fn delete_attachment(&self, cx: &Cx, name: &str) -> Result<bool, ClientError> {
        let (api, options) = (cx.client.all::<VolumeAttachment>(), DeleteOptions::default());
        if let Some(attachment) = self.attachments.find("", name) {
            api.delete_this(&attachment.metadata, options).await?;
            return Ok(true);
        }
        match api.delete(name, &options).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(false),
        }
    }

    /// Brings a volume. Says when to look at the node again.
    async fn attach(&self, cx: &Cx, node: &str, target: &Target, wanted: &AllWanted) -> Option<Instant> {
        let (now, name) = (cx.clock.monotonic(), target.attachment(node));
        if self.attachments.find("", &name).is_some() {
            // What became of it is there to be seen.
            return Some(now);
        }
        match cx.client.all::<VolumeAttachment>().create(&attachment(name, target, node)).await {
            Err(error) if !error.is_already_exists() => {
                let error = format!("kubernetes.io/csi: attacher.Attach failed: {error}");
                self.fail(cx, node, target, &error, wanted)
            }
            _ => Some(now + ATTACHER_TIMEOUT),
        }
    }

    fn fail(&self, cx: &Cx, node: &str, target: &Target, error: &str, wanted: &AllWanted) -> Option<Instant> {
        let (now, name, mut own) = (cx.clock.monotonic(), target.name(), Steps::default());
        let until = {
            let mut state = self.state.lock();
            self.record(&mut state, node, &name, Progress::Failed(error.to_owned()), now, &mut own);
            self.wake(&state, &name);
            state.entry(node, &name).and_then(|entry| entry.back_off.until(now))
        };
        self.tell(cx, wanted, &own);
        until
    }
}

/// Works at several volumes at the same time.
async fn at_once<F: Future>(operations: Vec<F>) -> Vec<F::Output> {
    stream::iter(operations).buffer_unordered(AT_ONCE).collect().await
}

/// Chooses what can be brought to a node, and takes down for what it waits.
fn bring(state: &mut State, node: &str, wanted: &AllWanted, now: Instant, steps: &mut Steps) {
    let mut still = BTreeSet::new();
    for (name, Wanted { target, .. }) in wanted {
        if let Some(entry) = state.entry(node, name) {
            if entry.is_confirmed || entry.work != Work::Idle {
                continue;
            }
            if let Some(until) = entry.back_off.until(now) {
                steps.look_again(until);
                continue;
            }
        }
        if target.is_exclusive
            && let Some(elsewhere) = state.elsewhere(node, name)
        {
            let nodes = if let Elsewhere::Attached(nodes) = elsewhere { Some(nodes) } else { None };
            if state.wait(node, name, nodes.is_some()) {
                steps.refused.extend(nodes.map(|nodes| (name.clone(), nodes)));
            }
            still.insert(name.clone());
            continue;
        }
        let back_off = state.entry(node, name).map(|entry| entry.back_off).unwrap_or_default();
        let work = Work::Attaching { began: now };
        state.put(node, Entry { work, back_off, ..Entry::uncertain(target.clone()) });
        steps.attach.push(target.clone());
    }
    state.stop_waiting(node, &still);
}

/// Asks the server, whose word is newer than the cache's.
async fn check_unused(cx: &Cx, node: &str, volume: &str) -> Result<(), String> {
    match cx.client.all::<Node>().get_opt(node).await {
        Ok(Some(node)) if node.status.volumes_in_use.iter().any(|own| own == volume) => {
            Err("volume is still in use by node, according to Node status".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("failed to get node {node:?} from API server: {error}")),
    }
}

fn attachment(name: String, target: &Target, node: &str) -> VolumeAttachment {
    let metadata = ObjectMeta { name, ..ObjectMeta::default() };
    let source = VolumeAttachmentSource { persistent_volume_name: Some(target.volume.clone()), ..Default::default() };
    let spec = VolumeAttachmentSpec { attacher: target.driver.clone(), source, node_name: node.to_owned() };
    VolumeAttachment { metadata, spec, ..VolumeAttachment::default() }
}

/// The list as a whole; nothing takes it away.
fn attached_patch(volumes: &[AttachedVolume]) -> Patch {
    let mut body = Value::Object(Default::default());
    let list = if volumes.is_empty() { Value::Null } else { to_value(&volumes.to_vec()) };
    body["status"]["volumesAttached"] = list;
    Patch::Strategic(body)
}
