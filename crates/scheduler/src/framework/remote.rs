//! Plugins that have to wait for somebody else's word, such as HTTP extenders. They are asked after the pure plugins, about
//! the nodes that are left, for the pods they are interested in and for no longer than they say.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::candidate::Candidate;
use super::cycle_state::CycleState;
use super::diagnosis::Diagnosis;
use super::points::{Bound, CycleCx};
use super::profile::{At, Profile};
use super::status::{Code, Status, StatusResult};
use crate::node_info::NodeView;
use crate::pod_info::PodInfo;

/// What all plugins that wait have to say of it.
pub trait Remote: Send + Sync {
    /// Whether it has anything to say about this pod; it is not asked otherwise.
    fn is_interested(&self, pod: &PodInfo) -> bool;
    /// How long one answer may take.
    fn deadline(&self) -> Duration;
    /// Whom it asks, for people to read.
    fn address(&self) -> &str;
    /// Whether the others decide where it fails to answer; otherwise the attempt fails.
    fn is_ignorable(&self) -> bool;
}

/// Whether nodes can run a pod.
#[async_trait]
pub trait RemoteFilter: Remote {
    /// A verdict for each node, in their order.
    async fn filter(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
    ) -> Result<Vec<StatusResult>, Status>;
}

/// How well nodes suit a pod. A failure counts as no score, whatever [`Remote::is_ignorable`] says.
#[async_trait]
pub trait RemoteScore: Remote {
    /// A score for each node, in their order, up to [`super::MAX_SCORE`].
    async fn score(&self, state: &CycleState, pod: &PodInfo, nodes: &[NodeView<'_>]) -> Result<Vec<i64>, Status>;
}

/// Binds pods in the place of the other plugins.
#[async_trait]
pub trait RemoteBind: Remote {
    /// Binds.
    async fn bind(&self, pod: &PodInfo, node: &str) -> StatusResult;
}

/// Has a say in which pods are evicted.
#[async_trait]
pub trait RemotePreempt: Remote {
    /// Those of the candidates that are left, with the victims that are left; in any order.
    async fn review(
        &self,
        cx: CycleCx<'_>,
        pod: &PodInfo,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Status>;
}

/// The answer of a plugin, in time; nothing where others decide without it.
async fn answer<T>(
    remote: &(impl Remote + ?Sized),
    asked: impl Future<Output = Result<T, Status>>,
) -> Result<Option<T>, Status> {
    let in_time = tokio::time::timeout(remote.deadline(), asked).await;
    let too_late = || Status::error(format!("{}: context deadline exceeded", remote.address()));
    match in_time.unwrap_or_else(|_| Err(too_late())) {
        Ok(answer) => Ok(Some(answer)),
        Err(status) if remote.is_ignorable() => {
            let address = remote.address();
            tracing::warn!(address, error = %status, "Going on without a plugin that failed to answer");
            Ok(None)
        }
        Err(status) => Err(status),
    }
}

/// The plugins of a point that are interested in a pod.
fn interested<'a, T: Remote + ?Sized>(point: &'a [At<T>], pod: &PodInfo) -> impl Iterator<Item = &'a At<T>> {
    point.iter().filter(|at| at.plugin.is_interested(pod))
}

impl Profile {
    /// Whether the decision for this pod waits for anybody.
    #[must_use]
    pub(crate) fn asks_remotely(&self, pod: &PodInfo) -> bool {
        interested(&self.remote_filter, pod).next().is_some() || interested(&self.remote_score, pod).next().is_some()
    }

    /// Whether it matters which of the nodes are found that can run a pod.
    #[must_use]
    pub(crate) fn chooses_among_nodes(&self) -> bool {
        !self.score.is_empty() || !self.remote_filter.is_empty() || !self.remote_score.is_empty()
    }

    /// The nodes that all remote filters take: each is asked about those that the one before left. Why the others are
    /// not among them goes to the diagnosis.
    ///
    /// # Errors
    /// When one fails that may not be ignored.
    pub(crate) async fn run_remote_filters<'a>(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        mut nodes: Vec<NodeView<'a>>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Vec<NodeView<'a>>, Status> {
        for at in interested(&self.remote_filter, pod) {
            if nodes.is_empty() {
                break;
            }
            let asked = at.plugin.filter(state, pod, &nodes);
            let Some(verdicts) = answer(&*at.plugin, asked).await? else { continue };
            let mut left = Vec::with_capacity(nodes.len());
            for (node, verdict) in nodes.iter().zip(verdicts) {
                match verdict {
                    Ok(()) => left.push(*node),
                    Err(status) if status.code == Code::Error => return Err(status),
                    Err(status) => {
                        let status = status.by(at.name);
                        diagnosis.blame(&status);
                        diagnosis.statuses.insert(node.index, status);
                    }
                }
            }
            nodes = left;
        }
        Ok(nodes)
    }

    /// Adds the scores of all remote plugins, which are asked side by side.
    pub(crate) async fn run_remote_scores(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
        totals: &mut [i64],
    ) {
        let asked = interested(&self.remote_score, pod)
            .map(|at| async move { (at, answer(&*at.plugin, at.plugin.score(state, pod, nodes)).await) });
        for (at, scores) in join_all(asked).await {
            match scores {
                Ok(scores) => {
                    for (total, score) in totals.iter_mut().zip(scores.into_iter().flatten()) {
                        *total = total.saturating_add(score.saturating_mul(at.weight));
                    }
                }
                Err(error) => {
                    let address = at.plugin.address();
                    tracing::warn!(address, %error, "Scores that did not come do not count");
                }
            }
        }
    }

    /// Lets the first remote plugin bind that is interested in the pod.
    ///
    /// # Errors
    /// When it fails, unless it may be ignored: then it is the next one's turn.
    pub(crate) async fn run_remote_bind(&self, pod: &PodInfo, node: &str) -> Result<Bound, Status> {
        for at in interested(&self.remote_bind, pod) {
            if answer(&*at.plugin, at.plugin.bind(pod, node)).await?.is_some() {
                return Ok(Bound::Done);
            }
        }
        Ok(Bound::Skip)
    }

    /// Whether remote plugins have a say in what is evicted for a pod.
    #[must_use]
    pub(crate) fn reviews_remotely(&self, pod: &PodInfo) -> bool {
        interested(&self.remote_preempt, pod).next().is_some()
    }

    /// The candidates that all remote plugins leave, each asked about what the one before left.
    ///
    /// # Errors
    /// When one fails that may not be ignored.
    pub(crate) async fn run_remote_preempt(
        &self,
        cx: CycleCx<'_>,
        pod: &PodInfo,
        mut candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Status> {
        for at in interested(&self.remote_preempt, pod) {
            if candidates.is_empty() {
                break;
            }
            let asked = at.plugin.review(cx, pod, candidates.clone());
            if let Some(left) = answer(&*at.plugin, asked).await? {
                candidates = left;
            }
        }
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::cache::Snapshot;
    use crate::plugins::default_profile;
    use crate::pod_class::ClassTable;
    use crate::test_objects::{node, pod, snapshot};

    /// Takes so many seconds to say that it wants the nodes of these names, or that it fails.
    struct Slow {
        seconds: u64,
        wants: Result<&'static str, ()>,
        ignorable: bool,
        asked: Mutex<Vec<String>>,
    }

    impl Slow {
        fn new(seconds: u64, wants: Result<&'static str, ()>, ignorable: bool) -> Arc<Self> {
            Arc::new(Self { seconds, wants, ignorable, asked: Mutex::default() })
        }

        async fn wants(&self, nodes: &[NodeView<'_>]) -> Result<Vec<bool>, Status> {
            self.asked.lock().push(nodes.iter().map(|node| &*node.info.name).collect());
            tokio::time::sleep(Duration::from_secs(self.seconds)).await;
            let wants = self.wants.map_err(|()| Status::error("unwell"))?;
            Ok(nodes.iter().map(|node| wants.contains(&*node.info.name)).collect())
        }
    }

    impl Remote for Slow {
        fn is_interested(&self, pod: &PodInfo) -> bool {
            pod.pod.metadata.name != "dull"
        }
        fn deadline(&self) -> Duration {
            Duration::from_secs(5)
        }
        fn address(&self) -> &str {
            "slow"
        }
        fn is_ignorable(&self) -> bool {
            self.ignorable
        }
    }

    #[async_trait]
    impl RemoteFilter for Slow {
        async fn filter(
            &self,
            _: &CycleState,
            _: &PodInfo,
            nodes: &[NodeView<'_>],
        ) -> Result<Vec<StatusResult>, Status> {
            let verdict = |wants: bool| if wants { Ok(()) } else { Err(Status::unschedulable("unwanted")) };
            Ok(self.wants(nodes).await?.into_iter().map(verdict).collect())
        }
    }

    #[async_trait]
    impl RemoteScore for Slow {
        async fn score(&self, _: &CycleState, _: &PodInfo, nodes: &[NodeView<'_>]) -> Result<Vec<i64>, Status> {
            Ok(self.wants(nodes).await?.into_iter().map(|wants| if wants { 10 } else { 0 }).collect())
        }
    }

    fn cluster() -> Snapshot {
        snapshot(vec![node("a"), node("b"), node("c")], Vec::new(), &ClassTable::default())
    }

    fn views(snapshot: &Snapshot) -> Vec<NodeView<'_>> {
        (0..snapshot.len()).filter_map(|index| snapshot.view(index)).collect()
    }

    fn profile(change: impl FnOnce(&mut Profile)) -> Arc<Profile> {
        let mut profile = default_profile();
        change(Arc::get_mut(&mut profile).unwrap());
        profile
    }

    fn at<T: ?Sized>(plugin: Arc<T>, weight: i64) -> At<T> {
        At { place: 40, name: "Slow", weight, plugin }
    }

    /// The nodes that are left for a pod, or the error, and after how many seconds.
    async fn filtered(plugins: &[Arc<Slow>], name: &str) -> (String, u64) {
        let profile = profile(|profile| {
            profile.remote_filter.extend(plugins.iter().map(|plugin| at(plugin.clone() as Arc<dyn RemoteFilter>, 1)));
        });
        let (snapshot, info, start) = (cluster(), pod(name).info(&ClassTable::default()), tokio::time::Instant::now());
        assert_eq!(profile.asks_remotely(&info), name != "dull");
        let (mut diagnosis, state) = (Diagnosis::default(), CycleState::default());
        let left = profile.run_remote_filters(&state, &info, views(&snapshot), &mut diagnosis).await;
        let rejects = !diagnosis.statuses.is_empty();
        assert_eq!(diagnosis.unschedulable_plugins.contains("Slow"), rejects);
        let names = |nodes: Vec<NodeView<'_>>| nodes.iter().map(|node| &*node.info.name).collect::<String>();
        (left.map_or_else(|error| error.message(), names), start.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn filters_are_asked_one_after_the_other_and_never_for_longer_than_they_say() {
        let (first, second) = (Slow::new(4, Ok("ab"), false), Slow::new(4, Ok("bc"), false));
        assert_eq!(filtered(&[first.clone(), second.clone()], "p").await, ("b".into(), 8));
        assert_eq!((&*first.asked.lock(), &*second.asked.lock()), (&vec!["abc".to_owned()], &vec!["ab".to_owned()]));
        assert_eq!(filtered(std::slice::from_ref(&first), "dull").await, ("abc".into(), 0));
        let (nobody, last) = (Slow::new(0, Ok(""), false), Slow::new(0, Ok("abc"), false));
        assert_eq!(filtered(&[nobody, last.clone()], "p").await, (String::new(), 0));
        assert!(last.asked.lock().is_empty());
        for (seconds, wants, message) in [(6, Ok("a"), "slow: context deadline exceeded"), (1, Err(()), "unwell")] {
            let took = seconds.min(5);
            assert_eq!(filtered(&[Slow::new(seconds, wants, false)], "p").await, (message.into(), took));
            assert_eq!(filtered(&[Slow::new(seconds, wants, true), first.clone()], "p").await, ("ab".into(), took + 4));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn scores_are_asked_for_side_by_side_and_those_that_do_not_come_do_not_count() {
        let slow = [(4, Ok("a"), 2), (3, Ok("ab"), 3), (6, Ok("c"), 1), (1, Err(()), 1)];
        let profile = profile(|profile| {
            let all = slow.iter().map(|(seconds, wants, weight)| {
                at(Slow::new(*seconds, *wants, false) as Arc<dyn RemoteScore>, *weight)
            });
            profile.remote_score.extend(all);
        });
        let (snapshot, start) = (cluster(), tokio::time::Instant::now());
        let mut totals = vec![1, 1, 1];
        let info = pod("p").info(&ClassTable::default());
        profile.run_remote_scores(&CycleState::default(), &info, &views(&snapshot), &mut totals).await;
        assert_eq!((totals, start.elapsed().as_secs()), (vec![51, 31, 1], 5));
    }
}
