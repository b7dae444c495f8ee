//! What users do with `kubectl`, as tables of commands and what each must say; for the newest and for an older version.

mod changing;
mod creating;
mod inspecting;
mod streaming;

use std::path::PathBuf;

use tests::desk::Desk;
use tests::table::{Row, Want::*};

use crate::cluster::{Cluster, manifest};

/// One version's way through all of it.
pub(crate) async fn story(cluster: Cluster, version: &str) {
    let namespace = format!("kubectl-{}", version.replace('.', "-"));
    let files = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&namespace);
    let desk =
        Desk::new(cluster.kubectl(version, &namespace), version, files).knowing("MANIFEST", &manifest("kubectl.yaml"));
    inspecting::story(&desk).await;
    streaming::story(&desk, &cluster).await;
    changing::story(&desk).await;
    creating::story(&desk).await;
    desk.work_through(&[
        Row::new("delete namespace $NS --timeout=120s", Says(&["namespace \"$NS\" deleted"])),
        Row::new("get namespace $NS", Fails(&["namespaces \"$NS\" not found"])),
    ])
    .await;
    let problems = desk.leave();
    assert_eq!(problems, 0, "{problems} commands did not do what they should");
}
