//! Plays inputs to a target and says what harm they did.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::mutate::mutate;

/// How many inputs are kept to make others of.
const POOL: usize = 4096;

/// Something that takes input from outside.
pub(crate) struct Target {
    /// Its name, and that of its folder of inputs in `tests/corpus`.
    pub(crate) name: &'static str,
    /// Words of its language.
    pub(crate) words: &'static [&'static str],
    /// Makes what inputs are played to, one for each thread. An answer tells inputs apart that were taken differently, such
    /// as the text of an error; one that differs from all before is kept to make others of. It panics where a promise is broken.
    pub(crate) player: fn() -> Box<dyn FnMut(&[u8]) -> String>,
}

/// How long inputs are played.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Inputs(u64),
    Time(Duration),
}

/// How a target is played.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) until: Until,
    /// What a single input may take of a processor.
    pub(crate) work: Duration,
}

/// An input that did harm.
#[derive(Debug)]
pub(crate) struct Harm {
    pub(crate) input: Vec<u8>,
    pub(crate) what: String,
}

/// What came of a target.
pub(crate) struct Report {
    pub(crate) inputs: u64,
    /// Answers that differ.
    pub(crate) answers: usize,
    pub(crate) harm: Option<Harm>,
}

/// The committed inputs of a target.
pub(crate) fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("an input")).collect()
}

/// Plays the committed inputs, and then others that are made of them. The first that does harm ends it.
pub(crate) fn play(target: &Target, plan: Plan) -> Report {
    let mut player = (target.player)();
    let mut pool = corpus(target.name);
    let mut report = Report { inputs: 0, answers: 0, harm: None };
    let (mut answers, mut rng, start) = (HashSet::new(), StdRng::seed_from_u64(plan.seed), Instant::now());
    for input in pool.clone() {
        report.inputs += 1;
        match answer(&mut player, &input, plan.work) {
            Ok(answer) => drop(answers.insert(shape(&answer))),
            Err(what) => return Report { harm: Some(Harm { input, what }), ..report },
        }
    }
    let goes_on = |inputs: u64| match plan.until {
        Until::Inputs(most) => inputs < most,
        Until::Time(most) => start.elapsed() < most,
    };
    while goes_on(report.inputs) {
        let input = mutate(&mut rng, &pool, target.words);
        report.inputs += 1;
        match answer(&mut player, &input, plan.work) {
            Ok(answer) if answers.insert(shape(&answer)) && pool.len() < POOL => pool.push(input),
            Ok(_) => {}
            Err(what) => return Report { harm: Some(Harm { input, what }), answers: answers.len(), ..report },
        }
    }
    Report { answers: answers.len(), ..report }
}

/// What an input is answered, or the harm that it did.
fn answer(player: &mut dyn FnMut(&[u8]) -> String, input: &[u8], work: Duration) -> Result<String, String> {
    let start = used();
    let answer = catch_unwind(AssertUnwindSafe(|| player(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })?;
    let took = used().saturating_sub(start);
    if took > work { Err(format!("it took {took:?} of a processor")) } else { Ok(answer) }
}

/// The processor's time that this thread has used: others may keep it waiting.
fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

/// An answer without what is only this input's: numbers and what is quoted.
fn shape(answer: &str) -> String {
    let mut shape = String::new();
    let mut quoted = false;
    for c in answer.chars().take(400) {
        quoted ^= c == '"';
        if !quoted && !c.is_ascii_digit() {
            shape.push(c);
        }
    }
    shape
}
