//! Who crashes in the life of a volume, and when.

use std::time::Duration;

use testing::{NODES, Part};

use super::disks::{Moment, Step};
use super::{Story, driver};
use crate::simulate;

/// How long whoever crashes is away.
const AWAY: Duration = Duration::from_secs(8);
/// How long who is back has to act on what it finds.
const TO_ACT: Duration = Duration::from_secs(5);

/// Who crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
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
}

impl Story {
    /// The victim crashes in a step, and is back a while later.
    pub(super) async fn strike_in(&mut self, step: Step, crash: Option<Crash>) {
        let moment = crash.map_or(Moment::After, |crash| crash.moment);
        self.until(&format!("{step:?} begins"), |_, disks| disks.has_reached(step, moment)).await;
        let Some(Crash { victim, is_slow, .. }) = crash else { return };
        self.disks.hold(is_slow.then_some((step, moment)));
        self.stop(victim);
        self.wait(AWAY).await;
        self.start(victim);
        self.cluster.wait_serving().await.expect("the API server answers");
        if is_slow {
            self.wait(TO_ACT).await;
            self.disks.hold(None);
        }
    }

    fn stop(&self, victim: Victim) {
        self.parts(victim).into_iter().for_each(|part| self.cluster.stop(part));
        if victim == Victim::Driver {
            self.driver.cancel();
            self.disks.set_down(true);
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

/// Plays all stories of a victim.
fn survives(victim: Victim) {
    let moments = [(Moment::Before, false), (Moment::Before, true), (Moment::After, false), (Moment::After, true)];
    let crashes = moments.map(|(moment, is_slow)| Crash { victim, moment, is_slow });
    let left: Vec<String> = crashes.into_iter().flat_map(|crash| simulate(Story::of(Some(crash)))).collect();
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn a_volume_survives_api_servers_that_crash() {
    survives(Victim::Part(Part::ApiServer(0)));
}

#[test]
fn a_volume_survives_controller_managers_that_crash() {
    survives(Victim::Part(Part::Controllers(0)));
}

#[test]
fn a_volume_survives_schedulers_that_crash() {
    survives(Victim::Part(Part::Scheduler(0)));
}

#[test]
fn a_volume_survives_kubelets_that_crash() {
    survives(Victim::Kubelets);
}

#[test]
fn a_volume_survives_drivers_that_crash() {
    survives(Victim::Driver);
}
