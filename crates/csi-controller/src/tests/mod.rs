//! Volumes from claim to removal: the controllers between a server and a driver at its socket; and what is left when the
//! controllers are killed, and the driver hangs or lies, at each call that there is.

mod bench;

use std::time::Duration;

use node_api::csi::fake::Fault;
use node_api::tonic::Code;

use bench::{Bench, Victim};

/// The life of a volume, in which every call of a driver happens: it is made, attached, grown, changed, snapshotted, restored,
/// copied, and everything goes.
async fn life(bench: &Bench, name: &str) {
    bench.claim(name, "1Mi", None).await;
    bench.bound(name).await;
    bench.attach(name).await;
    bench.grow(name, "2Mi").await;
    bench.modify(name, "gold").await;
    bench.snapshot(name).await;
    let (copy, restored) = (format!("{name}-copy"), format!("{name}-restored"));
    bench.claim(&copy, "2Mi", Some(("", "PersistentVolumeClaim", name))).await;
    bench.claim(&restored, "2Mi", Some(("snapshot.storage.k8s.io", "VolumeSnapshot", name))).await;
    bench.bound(&copy).await;
    bench.bound(&restored).await;
    bench.there_is_one_of_each(&[name, &copy, &restored]).await;
    assert_eq!(bench.driver.snapshots().len(), 1);
    bench.remove(&[name, &copy, &restored], name).await;
    bench.nothing_is_left().await;
}

/// Each call of a driver that changes something.
const CALLS: [&str; 8] = [
    "CreateVolume",
    "ControllerPublishVolume",
    "ControllerExpandVolume",
    "ControllerModifyVolume",
    "CreateSnapshot",
    "DeleteSnapshot",
    "ControllerUnpublishVolume",
    "DeleteVolume",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_lives_and_goes_whatever_fails() {
    let bench = Bench::new().await;
    life(&bench, "plain").await;
    for call in CALLS {
        let name = call.to_lowercase();
        // The driver refuses for now, and does what it says it has not done.
        bench.driver.fail_next(call, Fault::Refuse(Code::Unavailable, "not now"));
        bench.driver.fail_next(call, Fault::Lie(Code::Unavailable));
        bench.driver.fail_next(call, Fault::Lie(Code::DeadlineExceeded));
        life(&bench, &format!("{name}-lie")).await;
        // The controller is killed while the driver is at work; and after it was, before anybody knows.
        for (fault, kind) in [(Fault::Hang, "hang"), (Fault::Lie(Code::Unavailable), "unheard")] {
            bench.driver.fail_next(call, fault);
            let name = format!("{name}-{kind}");
            tokio::join!(life(&bench, &name), bench.kill_at_next(Victim::Controller, call));
        }
    }
    bench.shutdown().await;
}

/// A step in the life of a snapshot and of what is made of volumes and snapshots, with the call that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Snapshot,
    Clone,
    Restore,
    Forget,
}

impl Step {
    const ALL: [Self; 4] = [Self::Snapshot, Self::Clone, Self::Restore, Self::Forget];

    fn call(self) -> &'static str {
        match self {
            Self::Snapshot => "CreateSnapshot",
            Self::Clone | Self::Restore => "CreateVolume",
            Self::Forget => "DeleteSnapshot",
        }
    }

    async fn take(self, bench: &Bench, [name, clone, restored]: [&str; 3]) {
        match self {
            Self::Snapshot => bench.snapshot(name).await,
            Self::Clone => {
                bench.claim(clone, "1Mi", Some(("", "PersistentVolumeClaim", name))).await;
                bench.bound(clone).await;
            }
            Self::Restore => {
                bench.claim(restored, "1Mi", Some(("snapshot.storage.k8s.io", "VolumeSnapshot", name))).await;
                bench.bound(restored).await;
            }
            Self::Forget => bench.delete_snapshot(name).await,
        }
    }
}

/// Somebody is killed in one step of it, while the driver is at work or after it was. Nothing is made twice, of anything else,
/// or left behind.
async fn copies(bench: &Bench, struck: Step, victim: Victim, fault: &Fault, number: usize) {
    // The fake server makes uids of names: of a name that was used before, volumes would be named as those that go.
    let claims = ["original", "clone", "restored"].map(|what| format!("{what}-{number}"));
    let claims = claims.each_ref().map(String::as_str);
    let [name, clone, restored] = claims;
    bench.claim(name, "1Mi", None).await;
    bench.bound(name).await;
    for step in Step::ALL {
        if step != struck {
            step.take(bench, claims).await;
            continue;
        }
        bench.driver.fail_next(step.call(), fault.clone());
        tokio::join!(step.take(bench, claims), bench.kill_at_next(victim, step.call()));
        if step == Step::Snapshot {
            assert_eq!(bench.driver.snapshots().len(), 1, "{victim:?} in {step:?}");
        }
    }
    bench.there_is_one_of_each(&claims).await;
    for (claim, origin) in [(name, ""), (clone, "volume/"), (restored, "snapshot/")] {
        let found = bench.origin_of(claim).await;
        assert_eq!(found.split_inclusive('/').next().unwrap_or_default(), origin, "{victim:?} in {struck:?}");
    }
    for claim in claims {
        bench.delete_claim(claim).await;
    }
    bench.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_and_clones_survive_who_is_killed() {
    let (bench, mut number) = (Bench::new().await, 0);
    for step in Step::ALL {
        for victim in [Victim::Controller, Victim::Driver] {
            for fault in [Fault::Hang, Fault::Lie(Code::Unavailable)] {
                number += 1;
                copies(&bench, step, victim, &fault, number).await;
            }
        }
    }
    bench.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_hangs_is_given_up_and_others_go_on() {
    let bench = Bench::new().await;
    bench.driver.fail_next("CreateVolume", Fault::Hang);
    bench.claim("first", "1Mi", None).await;
    bench.is_asked("CreateVolume").await;
    bench.claim("second", "1Mi", None).await;
    bench.bound("second").await;
    // A call has two seconds here.
    bench.bound("first").await;
    bench.has_event("first", "ProvisioningFailed", "code = DeadlineExceeded").await;
    bench.driver.fail_next("CreateVolume", Fault::Refuse(Code::InvalidArgument, "no such thing"));
    bench.claim("third", "1Mi", None).await;
    bench.has_event("third", "ProvisioningFailed", "no such thing").await;
    bench.bound("third").await;
    bench.shutdown().await;
}

/// A claim that is deleted while nobody knows whether its volume was made leaves no volume.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_goes_meanwhile_leaves_no_volume() {
    let bench = Bench::new().await;
    for _ in 0..3 {
        bench.driver.fail_next("CreateVolume", Fault::Lie(Code::Unavailable));
    }
    bench.claim("gone", "1Mi", None).await;
    bench.has_event("gone", "ProvisioningFailed", "the work is done all the same").await;
    bench.delete_claim("gone").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.nothing_is_left().await;
    bench.shutdown().await;
}
