//! Contests between our code and a peer's, for the programs beside: each operation is done by both in one process, in
//! turns, and timed by the thread's processor time, so that what else the machine does counts as little as it can.

use std::io::Write as _;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};

/// How long a round of one side is: long beside the clock's steps, short beside what else goes on.
const ITERATIONS: usize = 200;
const ROUNDS: usize = 101;
const QUICK_ROUNDS: usize = 3;

/// One operation, done by us and by the peer.
pub struct Contest<'a> {
    /// What the figure is called, without blanks.
    pub name: &'static str,
    /// Does it once our way.
    pub ours: Box<dyn Fn() + 'a>,
    /// Does it once the peer's way.
    pub peer: Box<dyn Fn() + 'a>,
}

/// Runs the contests that the arguments ask for and prints a `RESULT` for each: medians in microseconds and our part of
/// the peer's time. `--quick` does a few rounds only, to see that it works; names of figures restrict the run to these.
///
/// # Errors
///
/// A clock that does not move, or an output that is closed.
pub fn run(contests: Vec<Contest<'_>>) -> Result<()> {
    let (flags, names): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let rounds = if flags.iter().any(|flag| flag == "--quick") { QUICK_ROUNDS } else { ROUNDS };
    let is_wanted = |contest: &Contest<'_>| names.is_empty() || names.iter().any(|name| name == contest.name);
    contests.into_iter().filter(is_wanted).try_for_each(|contest| hold(&contest, rounds))
}

fn hold(contest: &Contest<'_>, rounds: usize) -> Result<()> {
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(microseconds_each(&contest.ours));
        peer.push(microseconds_each(&contest.peer));
    }
    let (ours, peer) = (median(ours), median(peer));
    ensure!(peer > 0.0, "the clock does not move");
    let ratio = ours / peer;
    writeln!(std::io::stdout(), "RESULT {} ours={ours:.3} peer={peer:.3} ratio={ratio:.2} unit=us", contest.name)?;
    Ok(())
}

fn microseconds_each(operation: &dyn Fn()) -> f64 {
    let before = thread_seconds();
    for _ in 0..ITERATIONS {
        operation();
    }
    (thread_seconds() - before) * 1e6 / ITERATIONS as f64
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
