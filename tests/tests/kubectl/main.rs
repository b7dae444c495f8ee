//! What the suite that upstream keeps for `kubectl` demands of a cluster, as tables of commands and what each must say.
//!
//! As there, only kube-apiserver and kube-controller-manager run, over one node object that nobody made true: nothing is
//! scheduled and no container starts. Each version of `kubectl` has servers of its own; each section has a namespace of its
//! own, so sections need not mind each other. Whatever is of the whole cluster (kinds, nodes, roles) is named by one section
//! alone.
//!
//! Runs the servers that lie beside it (`cargo build -p bin-kube-apiserver -p bin-kube-controller-manager` builds them);
//! `COXSWAIN_KUBECTL_SECTIONS=jobs,events` plays these sections only.

mod sections;
mod stage;

use futures_util::StreamExt as _;
use tests::desk::Desk;
use tests::table::Row;

use stage::Stage;

/// How many sections of a version go on at once: most of their time goes into starting `kubectl`.
const AT_ONCE: usize = 3;

/// A subject: its name is that of its namespace.
pub(crate) struct Section {
    name: &'static str,
    /// Files that are there when it begins, by their names in `$DIR`.
    files: &'static [(&'static str, &'static str)],
    rows: &'static [Row],
}

#[test]
fn kubectl_1_36_gets_what_it_expects() {
    judge("1.36");
}

#[test]
fn kubectl_1_32_gets_what_it_expects() {
    judge("1.32");
}

fn judge(version: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the system has threads").block_on(async {
        let Some(stage) = Stage::up(version).await else { return };
        let asked = std::env::var("COXSWAIN_KUBECTL_SECTIONS").unwrap_or_default();
        let is_asked = |section: &&&Section| asked.is_empty() || asked.split(',').any(|name| name == section.name);
        let sections: Vec<&Section> = sections::ALL.iter().filter(is_asked).copied().collect();
        assert!(!sections.is_empty(), "no section is called {asked}");
        let plays = sections.into_iter().map(|section| play(&stage, section));
        let problems: Vec<usize> = futures_util::stream::iter(plays).buffer_unordered(AT_ONCE).collect().await;
        let problems: usize = problems.iter().sum();
        assert_eq!(problems, 0, "{problems} commands did not do what they should\n{}", stage.last_words());
    });
}

/// Works a section through; how many of its commands did not do what they should.
async fn play(stage: &Stage, section: &Section) -> usize {
    let desk: Desk = stage.desk(section.name).await;
    for (name, text) in section.files {
        desk.write(name, text);
    }
    desk.work_through(section.rows).await;
    desk.leave()
}
