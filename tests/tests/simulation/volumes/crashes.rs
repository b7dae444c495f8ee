//! Who crashes in the life of a volume, and when.

use std::time::Duration;

use testing::{NODES, Part};
use tokio::time::Instant;

use super::disks::Step;
use super::steps::Moment;
use super::{LOOK, Story, driver};
use crate::simulate;

/// How long whoever crashes is away.
const AWAY: Duration = Duration::from_secs(8);
/// How long who is back has to act on what it finds.
const TO_ACT: Duration = Duration::from_secs(5);
/// How long who is back may take to do a step anew, and with that to be in the middle of its recovery.
const RECOVERY: Duration = Duration::from_secs(3);

const CONTROLLERS: Victim = Victim::Part(Part::Controllers(0));
const API_SERVER: Victim = Victim::Part(Part::ApiServer(0));

/// Who crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Part(Part),
    Kubelets,
    Driver,
}

/// Somebody crashes in each step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crash {
    victim: Victim,
    moment: Moment,
    /// The step goes on only a while after the victim is back.
    is_slow: bool,
    /// Who crashes while the victim recovers.
    then: Option<Victim>,
}

impl Crash {
    pub(super) const fn of(victim: Victim, moment: Moment) -> Self {
        Self { victim, moment, is_slow: false, then: None }
    }

    const fn slow(self) -> Self {
        Self { is_slow: true, ..self }
    }

    const fn and_then(self, victim: Victim) -> Self {
        Self { then: Some(victim), ..self }
    }
}

impl Story {
    /// The victim crashes in a step, and is back a while later.
    pub(super) async fn strike_in(&mut self, step: Step, crash: Option<Crash>) {
        let moment = crash.map_or(Moment::After, |crash| crash.moment);
        self.until(&format!("{step:?} begins"), |_, disks| disks.steps.reached(step, moment) > 0).await;
        let Some(Crash { victim, is_slow, then, .. }) = crash else { return };
        self.disks.steps.hold(is_slow.then_some((step, moment)));
        self.fell(victim).await;
        if let Some(next) = then {
            self.until_recovering(step).await;
            self.fell(next).await;
        }
        if is_slow {
            self.wait(TO_ACT).await;
            self.disks.steps.hold(None);
        }
    }

    /// Somebody crashes, and is back a while later.
    async fn fell(&mut self, victim: Victim) {
        self.stop(victim);
        self.wait(AWAY).await;
        self.start(victim);
        self.cluster.wait_serving().await.expect("the API server answers");
    }

    /// Waits until a step is asked for anew, as who has forgotten of it does, or until that is not to be expected any more.
    async fn until_recovering(&self, step: Step) {
        let (end, before) = (Instant::now() + RECOVERY, self.disks.steps.reached(step, Moment::Before));
        while Instant::now() < end && self.disks.steps.reached(step, Moment::Before) == before {
            self.wait(LOOK).await;
        }
    }

    fn stop(&self, victim: Victim) {
        self.parts(victim).into_iter().for_each(|part| self.cluster.stop(part));
        if victim == Victim::Driver {
            self.driver.cancel();
            self.disks.steps.set_down(true);
        }
    }

    fn start(&mut self, victim: Victim) {
        self.parts(victim).into_iter().for_each(|part| self.cluster.start(part).expect("it starts again"));
        if victim == Victim::Driver {
            self.driver = driver::start(&self.disks, self.cluster.admin());
        }
    }

    fn parts(&self, victim: Victim) -> Vec<Part> {
        match victim {
            Victim::Part(part) => vec![part],
            Victim::Kubelets => (0..NODES).map(Part::Node).collect(),
            Victim::Driver => Vec::new(),
        }
    }
}

/// Plays a story for each crash.
fn survives(crashes: impl IntoIterator<Item = Crash>) {
    let left: Vec<String> = crashes.into_iter().flat_map(|crash| simulate(Story::of(Some(crash)))).collect();
    assert!(left.is_empty(), "{}", left.join("\n"));
}

/// All crashes of a victim, one in each step.
fn all_of(victim: Victim) -> impl Iterator<Item = Crash> {
    let of_moment = move |moment| [Crash::of(victim, moment), Crash::of(victim, moment).slow()];
    [Moment::Before, Moment::After].into_iter().flat_map(of_moment)
}

#[test]
fn a_volume_survives_api_servers_that_crash() {
    survives(all_of(API_SERVER));
}

#[test]
fn a_volume_survives_controller_managers_that_crash() {
    survives(all_of(CONTROLLERS));
}

#[test]
fn a_volume_survives_schedulers_that_crash() {
    survives(all_of(Victim::Part(Part::Scheduler(0))));
}

#[test]
fn a_volume_survives_kubelets_that_crash() {
    survives(all_of(Victim::Kubelets));
}

#[test]
fn a_volume_survives_drivers_that_crash() {
    survives(all_of(Victim::Driver));
}

/// The same crashes again before it is done with its recovery: what it had begun to do about the first time is half done.
#[test]
fn a_volume_survives_who_crashes_again_while_it_recovers() {
    survives([Victim::Kubelets, Victim::Driver, CONTROLLERS].map(|own| Crash::of(own, Moment::After).and_then(own)));
}

/// Another crashes on whom the recovery of the first depends: kubelets on the driver, drivers on what controllers ask for,
/// controllers on what kubelets tell, and on the API server for all that they know.
#[test]
fn a_volume_survives_who_crashes_while_another_recovers() {
    survives([
        Crash::of(Victim::Kubelets, Moment::After).and_then(Victim::Driver),
        Crash::of(Victim::Driver, Moment::Before).slow().and_then(CONTROLLERS),
        Crash::of(CONTROLLERS, Moment::After).slow().and_then(Victim::Kubelets),
        Crash::of(CONTROLLERS, Moment::Before).and_then(API_SERVER),
    ]);
}
