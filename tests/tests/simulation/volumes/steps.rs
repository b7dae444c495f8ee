//! The steps of a driver take time, in two halves with the effect between them. They hang or fail where the driver is not to be
//! relied on, and end wherever they are where it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::SharedRng;
use parking_lot::Mutex;

/// How long each half of a step takes: that before it takes effect, and that before it is told.
const HALF: Duration = Duration::from_millis(800);
/// How long a step hangs at most in a driver that is not to be relied on.
const HANGS: Duration = Duration::from_secs(30);

/// When in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// It is asked for, and has no effect yet.
    Before,
    /// It has had its effect, and nobody knows of it.
    After,
}

/// A driver some of whose steps hang, or are said to have failed, before their effect or after it.
struct Unreliable {
    /// How many of a hundred.
    percent: u64,
    rng: SharedRng,
}

/// What goes wrong with a step.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    Hangs(Duration),
    Fails(Moment),
}

impl Unreliable {
    fn mishap(&self) -> Option<Mishap> {
        if self.rng.below(100) >= self.percent {
            return None;
        }
        Some(match self.rng.below(3) {
            0 => Mishap::Hangs(HANGS.mul_f64(self.rng.unit())),
            1 => Mishap::Fails(Moment::Before),
            _ => Mishap::Fails(Moment::After),
        })
    }
}

/// How the steps of a driver go, whatever they are called.
pub(crate) struct Steps<S>(Arc<Mutex<State<S>>>);

struct State<S> {
    /// How often each moment of a step has come.
    reached: BTreeMap<(S, Moment), usize>,
    /// Where steps go no further.
    held: Option<(S, Moment)>,
    /// Grows whenever the driver ends.
    lives: u64,
    is_down: bool,
    unreliable: Option<Unreliable>,
}

/// A step whose effect is now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun<S> {
    step: S,
    life: u64,
    is_to_fail: bool,
}

impl<S> Default for Steps<S> {
    fn default() -> Self {
        let (reached, held, unreliable) = (BTreeMap::new(), None, None);
        Self(Arc::new(Mutex::new(State { reached, held, lives: 0, is_down: false, unreliable })))
    }
}

impl<S> Clone for Steps<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Copy + Ord> Steps<S> {
    /// How often a moment of a step has come.
    pub(crate) fn reached(&self, step: S, moment: Moment) -> usize {
        self.0.lock().reached.get(&(step, moment)).copied().unwrap_or_default()
    }

    /// The driver ends, wherever it is, or is there again.
    pub(crate) fn set_down(&self, is_down: bool) {
        let mut state = self.0.lock();
        state.is_down = is_down;
        state.lives += u64::from(is_down);
    }

    /// So many of a hundred steps go wrong from now on.
    pub(crate) fn set_unreliable(&self, percent: u64, rng: &SharedRng) {
        self.0.lock().unreliable = Some(Unreliable { percent, rng: SharedRng::clone(rng) });
    }

    /// The driver can be relied on again.
    pub(crate) fn set_reliable(&self) {
        self.0.lock().unreliable = None;
    }

    /// Steps go no further than this from now on.
    pub(crate) fn hold(&self, held: Option<(S, Moment)>) {
        self.0.lock().held = held;
    }

    /// Half of a step passes.
    async fn half(&self, step: S, moment: Moment) {
        tokio::time::sleep(HALF).await;
        while self.0.lock().held == Some((step, moment)) {
            tokio::time::sleep(HALF).await;
        }
    }

    /// Begins a step, to where it has its effect.
    ///
    /// # Errors
    /// What is told where it has none.
    pub(crate) async fn enter(&self, step: S) -> Result<Begun<S>, String> {
        let (life, mishap) = {
            let mut state = self.0.lock();
            if state.is_down {
                return Err(down());
            }
            *state.reached.entry((step, Moment::Before)).or_default() += 1;
            (state.lives, state.unreliable.as_ref().and_then(Unreliable::mishap))
        };
        self.half(step, Moment::Before).await;
        match mishap {
            Some(Mishap::Hangs(time)) => tokio::time::sleep(time).await,
            Some(Mishap::Fails(Moment::Before)) => return Err(failed(Moment::Before)),
            Some(Mishap::Fails(Moment::After)) | None => {}
        }
        if self.0.lock().lives != life {
            return Err(down());
        }
        Ok(Begun { step, life, is_to_fail: matches!(mishap, Some(Mishap::Fails(Moment::After))) })
    }

    /// Goes on from where a step has had its effect.
    ///
    /// # Errors
    /// What is told all the same.
    pub(crate) async fn leave(&self, begun: Begun<S>) -> Result<(), String> {
        let Begun { step, life, is_to_fail } = begun;
        *self.0.lock().reached.entry((step, Moment::After)).or_default() += 1;
        self.half(step, Moment::After).await;
        if is_to_fail {
            return Err(failed(Moment::After));
        }
        if self.0.lock().lives == life { Ok(()) } else { Err(down()) }
    }
}

fn down() -> String {
    "nobody is there".to_owned()
}

fn failed(moment: Moment) -> String {
    format!("something went wrong {moment:?} the effect")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::Rng;

    use super::*;

    /// How long a step took, whether it had its effect, and whether it was said to have.
    async fn go(steps: &Steps<u8>) -> (Duration, bool, bool) {
        let start = tokio::time::Instant::now();
        let (is_done, is_told) = match steps.enter(0).await {
            Ok(begun) => (true, steps.leave(begun).await.is_ok()),
            Err(_) => (false, false),
        };
        (start.elapsed(), is_told, is_done)
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_is_not_to_be_relied_on_fails_in_each_way() {
        let steps = Steps::default();
        steps.set_unreliable(100, &Rng::seeded(1));
        let (mut hung, mut ways) = (false, BTreeSet::new());
        for _ in 0..30 {
            let (took, is_told, is_done) = go(&steps).await;
            hung |= took > HALF * 4;
            ways.insert((is_told, is_done));
        }
        assert!(hung);
        assert_eq!(ways, BTreeSet::from([(false, false), (false, true), (true, true)]));
        steps.set_reliable();
        assert_eq!(go(&steps).await, (HALF * 2, true, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_ends_where_its_driver_does() {
        for (ends_after, expected) in [(HALF / 2, (false, false)), (HALF + HALF / 2, (false, true))] {
            let steps = Steps::default();
            let ending = async {
                tokio::time::sleep(ends_after).await;
                steps.set_down(true);
            };
            let ((_, is_told, is_done), ()) = tokio::join!(go(&steps), ending);
            assert_eq!((is_told, is_done), expected, "{ends_after:?}");
            assert_eq!(go(&steps).await, (Duration::ZERO, false, false));
            steps.set_down(false);
            assert_eq!(go(&steps).await, (HALF * 2, true, true));
        }
    }
}
