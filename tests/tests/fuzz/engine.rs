//! Plays inputs to a target, keeps those that led somewhere new, and says what harm they did.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::coverage::Coverage;
use crate::guard::{Guarded, wall};
use crate::mutate::{Mutator, pick};

/// How many inputs are kept to make others of, of those that were taken and of the others.
const POOL: usize = 2048;
/// One input in so many is made of nothing, where the target can do that.
const MADE_OF_NOTHING: u32 = 4;
/// How often parts of an input that did harm are left out, to see whether the rest does, too.
const SHRINKS: usize = 3_000;
/// No longer than this, as some targets take long to start.
const SHRINKING: Duration = Duration::from_secs(10);

/// Something that takes input from outside.
pub(crate) struct Target {
    /// Its name, and that of its folder of inputs in `tests/corpus`.
    pub(crate) name: &'static str,
    /// Words of its language; a [`crate::mutate::HOLE`] in one is filled with another.
    pub(crate) words: &'static [&'static str],
    /// Makes an input of nothing but chance and what is known of the form of inputs.
    pub(crate) made: Option<fn(&mut StdRng) -> Vec<u8>>,
    /// How many inputs it gets in each run of the tests: of one that takes long, few.
    pub(crate) inputs: u64,
    /// Makes what inputs are played to, one for each thread.
    pub(crate) player: fn() -> Player,
}

/// Takes an input. It panics where a promise is broken.
pub(crate) type Player = Box<dyn FnMut(&[u8]) -> Answer>;

/// What came of an input, and a text that tells inputs apart that were taken differently, such as that of an error.
pub(crate) enum Answer {
    Taken(String),
    Refused(String),
}

impl Answer {
    /// Of an outcome, as told by `well` where it is well.
    pub(crate) fn of<T, E: std::fmt::Display>(outcome: Result<T, E>, well: impl FnOnce(T) -> String) -> Self {
        outcome.map_or_else(|error| Self::Refused(error.to_string()), |value| Self::Taken(well(value)))
    }

    /// An input that says nothing to the target.
    pub(crate) fn nothing() -> Self {
        Self::Refused(String::new())
    }
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
    /// No input is longer, in bytes.
    pub(crate) longest: usize,
}

/// An input that did harm.
#[derive(Debug)]
pub(crate) struct Harm {
    pub(crate) input: Vec<u8>,
    pub(crate) what: String,
}

/// What came of a target.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) inputs: u64,
    /// Those that the target took; the others were refused.
    pub(crate) taken: u64,
    /// Those that led where none before them did.
    pub(crate) kept: u64,
    /// The most of a processor that one took, and which.
    pub(crate) slowest: (Duration, Vec<u8>),
    pub(crate) time: Duration,
    /// What the last of them was answered.
    pub(crate) answer: String,
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
    let mut game = Game::new(target, plan);
    let harm = game.corpus().or_else(|| game.others());
    let harm = harm.map(|harm| game.shrunk(harm));
    Report { harm, time: wall().saturating_sub(game.start), ..game.report }
}

/// Plays one input alone.
pub(crate) fn replay(target: &Target, plan: Plan, input: Vec<u8>) -> Report {
    let mut game = Game::new(target, plan);
    let harm = game.one(&input).err().map(|what| Harm { input, what });
    Report { harm, time: wall().saturating_sub(game.start), ..game.report }
}

struct Game<'t> {
    target: &'t Target,
    plan: Plan,
    player: Player,
    guarded: Guarded,
    coverage: Option<Coverage>,
    /// Shapes of answers; what is new is told by them where nothing better tells it.
    answers: HashSet<String>,
    /// What was kept: of inputs that were taken, and of those that were refused.
    taken: Vec<Vec<u8>>,
    refused: Vec<Vec<u8>>,
    report: Report,
    start: Duration,
}

/// What a target did with an input.
struct Played {
    taken: bool,
    is_new: bool,
}

impl<'t> Game<'t> {
    fn new(target: &'t Target, plan: Plan) -> Self {
        Self {
            target,
            plan,
            player: (target.player)(),
            guarded: Guarded::new(target.name),
            coverage: Coverage::of_this_build(),
            answers: HashSet::new(),
            taken: Vec::new(),
            refused: Vec::new(),
            report: Report::default(),
            start: wall(),
        }
    }

    fn corpus(&mut self) -> Option<Harm> {
        corpus(self.target.name).into_iter().find_map(|input| match self.one(&input) {
            Err(what) => Some(Harm { input, what }),
            Ok(played) => {
                self.pool(played.taken).push(input);
                None
            }
        })
    }

    fn others(&mut self) -> Option<Harm> {
        let mut rng = StdRng::seed_from_u64(self.plan.seed);
        while self.goes_on() {
            let input = self.next(&mut rng);
            match self.one(&input) {
                Err(what) => return Some(Harm { input, what }),
                Ok(played) if played.is_new => {
                    let pool = self.pool(played.taken);
                    match pool.len() {
                        POOL => pool[rng.random_range(0..POOL)] = input,
                        _ => pool.push(input),
                    }
                }
                Ok(_) => {}
            }
        }
        None
    }

    fn pool(&mut self, taken: bool) -> &mut Vec<Vec<u8>> {
        if taken { &mut self.taken } else { &mut self.refused }
    }

    fn goes_on(&self) -> bool {
        match self.plan.until {
            Until::Inputs(most) => self.report.inputs < most,
            Until::Time(most) => wall().saturating_sub(self.start) < most,
        }
    }

    fn next(&self, rng: &mut StdRng) -> Vec<u8> {
        let made = self.target.made.filter(|_| rng.random_range(0..MADE_OF_NOTHING) == 0);
        // Most of what is changed is refused: what was taken is worth more.
        let prefers_taken = !self.taken.is_empty() && rng.random_range(0..4_u8) > 0;
        let pool = if prefers_taken || self.refused.is_empty() { &self.taken } else { &self.refused };
        let start = match made {
            Some(made) => made(rng),
            None => pick(rng, pool).cloned().unwrap_or_default(),
        };
        if made.is_some() && rng.random::<bool>() {
            return start;
        }
        Mutator { pool, words: self.target.words, longest: self.plan.longest }.changed(rng, start)
    }

    /// Plays one: what came of it, or the harm that it did.
    fn one(&mut self, input: &[u8]) -> Result<Played, String> {
        let (outcome, used) = self.guarded.play(&mut self.player, input);
        self.report.inputs += 1;
        let answer = outcome?;
        if used > self.report.slowest.0 {
            self.report.slowest = (used, input.to_vec());
        }
        if used > self.plan.work {
            return Err(format!("it took {used:?} of a processor"));
        }
        let (taken, text) = match answer {
            Answer::Taken(text) => (true, text),
            Answer::Refused(text) => (false, text),
        };
        let is_new = match &mut self.coverage {
            Some(coverage) => coverage.is_new(),
            None => self.answers.insert(shape(&text)),
        };
        self.report.answer = text;
        self.report.taken += u64::from(taken);
        self.report.kept += u64::from(is_new);
        Ok(Played { taken, is_new })
    }

    /// The harm with as little of its input as still panics in the same place.
    fn shrunk(&mut self, harm: Harm) -> Harm {
        let Harm { mut input, what } = harm;
        if !is_panic(&what) {
            return Harm { input, what };
        }
        let (start, mut left, mut size) = (wall(), SHRINKS, input.len().div_ceil(2));
        while size > 0 {
            let mut at = 0;
            while at < input.len() {
                left -= 1;
                if left == 0 || wall() - start > SHRINKING {
                    return Harm { input, what };
                }
                let mut less = input.clone();
                less.drain(at..(at + size).min(input.len()));
                self.player = (self.target.player)();
                match self.one(&less) {
                    Err(other) if place(&other) == place(&what) => input = less,
                    _ => at += size,
                }
            }
            size /= 2;
        }
        Harm { input, what }
    }
}

/// Where a panic happened: what [`crate::guard`] begins its text with.
fn place(what: &str) -> &str {
    what.split_once(": ").map_or(what, |(place, _)| place)
}

fn is_panic(what: &str) -> bool {
    place(what).contains(".rs:")
}

/// An answer without what is only this input's: numbers and what is quoted.
fn shape(answer: &str) -> String {
    let mut shape = String::new();
    let mut quoted = false;
    for c in answer.chars().take(200) {
        quoted ^= matches!(c, '"' | '\'' | '`');
        if !quoted && !c.is_ascii_digit() {
            shape.push(c);
        }
    }
    shape
}
