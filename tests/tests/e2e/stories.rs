//! Running stories, catching what they find wrong, and saying how each went.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, join_all};
use tokio::time::Instant;

use crate::cluster::Cluster;

/// Something a user can do with a cluster; it panics where the cluster does not hold what it promises.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Cluster) -> LocalBoxFuture<'static, ()>,
}

/// How the stories went.
pub(crate) struct Report {
    filters: Vec<String>,
    failed: Vec<&'static str>,
}

impl Report {
    /// Arguments that are no flags name the stories that are wanted; flags are those of libtest and say nothing here.
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Self {
        Self { filters: arguments.filter(|word| !word.starts_with('-')).collect(), failed: Vec::new() }
    }

    pub(crate) fn wanted<'a>(&self, group: &'a [Story]) -> Vec<&'a Story> {
        group.iter().filter(|story| self.is_wanted(story.name)).collect()
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }

    /// A story that needs no cluster; its error says why it cannot be told on this machine.
    pub(crate) async fn machine_story<F>(&mut self, name: &'static str, run: impl FnOnce() -> F)
    where
        F: Future<Output = Result<(), String>>,
    {
        if !self.is_wanted(name) {
            return;
        }
        let start = Instant::now();
        match AssertUnwindSafe(run()).catch_unwind().await {
            Ok(Ok(())) => self.ended(name, start.elapsed(), true),
            Ok(Err(missing)) => self.skipped(name, &missing),
            Err(_) => self.ended(name, start.elapsed(), false),
        }
    }

    /// Brings the cluster up, tells the groups of stories one after the other (the first side by side), takes it down.
    pub(crate) async fn in_cluster(&mut self, cluster: &Cluster, groups: &[Vec<&Story>]) {
        if !self.step("up", cluster.start()).await {
            self.step("down", cluster.stop()).await;
            return;
        }
        let before = self.failed.len();
        if let Some((first, rest)) = groups.split_first() {
            let told = join_all(first.iter().map(|story| tell(story, cluster))).await;
            told.into_iter().for_each(|(name, took, held)| self.ended(name, took, held));
            for story in rest.iter().flatten() {
                let (name, took, held) = tell(story, cluster).await;
                self.ended(name, took, held);
            }
        }
        self.step("logs", cluster.check_logs()).await;
        if self.failed.len() > before {
            cluster.show_state().await;
        }
        self.step("down", cluster.stop()).await;
    }

    async fn step(&mut self, name: &'static str, work: impl Future<Output = ()>) -> bool {
        let start = Instant::now();
        let held = AssertUnwindSafe(work).catch_unwind().await.is_ok();
        self.ended(name, start.elapsed(), held);
        held
    }

    #[expect(clippy::print_stdout, reason = "the result of a test program")]
    fn ended(&mut self, name: &'static str, took: Duration, held: bool) {
        println!("story {name} ... {} ({:.1} s)", if held { "ok" } else { "FAILED" }, took.as_secs_f64());
        if !held {
            self.failed.push(name);
        }
    }

    pub(crate) fn skipped(&self, name: &str, missing: &str) {
        test_facts::skipped(&format!("story {name}: {missing}"));
    }

    #[expect(clippy::print_stdout, reason = "the result of a test program")]
    pub(crate) fn end(&self) -> ExitCode {
        if self.failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        println!("failed: {}", self.failed.join(", "));
        ExitCode::FAILURE
    }
}

async fn tell(story: &Story, cluster: &Cluster) -> (&'static str, Duration, bool) {
    let start = Instant::now();
    let held = AssertUnwindSafe((story.run)(cluster.clone())).catch_unwind().await.is_ok();
    (story.name, start.elapsed(), held)
}
