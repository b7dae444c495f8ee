//! What comes from outside, made up: whatever the bytes are, nobody panics, works without end, or forgets what he has read.
//! Each target plays the inputs of its folder in `tests/corpus` and some thousand more that are made of them; `make fuzz`
//! goes on for longer, and led by the code that inputs reach. An input that did harm is written down; once mended, it goes into
//! the folder. `docs/testing.md` says how to play one again, and how to add a target.

mod coverage;
mod documents;
mod engine;
mod guard;
mod made_schemas;
mod mutate;
mod objects;
mod targets;

use std::time::Duration;

use engine::{Answer, Harm, Plan, Report, Target, Until, play, replay};
use guard::findings;
use parking_lot::Mutex;
use targets::TARGETS;

/// What a single input may take of a processor in a run of the tests: far beyond what any needs, without optimization, too.
const WORK: Duration = Duration::from_secs(20);
/// The same in `make fuzz`, with optimization.
const WORK_OPTIMIZED: Duration = Duration::from_secs(1);
/// The longest input of a run of the tests, and of `make fuzz`, in bytes.
const LONGEST: usize = 8 * 1024;
const LONGEST_OPTIMIZED: usize = 256 * 1024;

/// The stack of a thread of the server; without optimization frames are several times as large.
const STACK_OPTIMIZED_BYTES: usize = 2 << 20;
const STACK_BYTES: usize = 8 << 20;

/// What is asked of a run, by variables (see `docs/testing.md`).
struct Asked {
    target: Option<String>,
    seed: u64,
    seconds: Option<u64>,
    input: Option<Vec<u8>>,
}

impl Asked {
    fn read() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let number = |name: &str| text(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")));
        Self {
            target: text("COXSWAIN_FUZZ_TARGET"),
            seed: number("COXSWAIN_FUZZ_SEED").unwrap_or(1),
            seconds: number("COXSWAIN_FUZZ_SECONDS"),
            input: text("COXSWAIN_FUZZ_INPUT").map(|file| std::fs::read(&file).expect("the input can be read")),
        }
    }

    fn plan(&self, target: &Target) -> Plan {
        match self.seconds {
            Some(own) => Plan {
                seed: self.seed,
                until: Until::Time(Duration::from_secs(own)),
                work: WORK_OPTIMIZED,
                longest: LONGEST_OPTIMIZED,
            },
            None => Plan { seed: self.seed, until: Until::Inputs(target.inputs), work: WORK, longest: LONGEST },
        }
    }

    fn targets(&self) -> Vec<&'static Target> {
        let name = self.target.as_deref();
        TARGETS.iter().filter(|target| name.is_none_or(|name| name == target.name)).collect()
    }

    fn stack_bytes(&self) -> usize {
        if self.seconds.is_some() { STACK_OPTIMIZED_BYTES } else { STACK_BYTES }
    }

    /// Whose code an input reached is counted for the process, so that long runs play one target at a time.
    fn threads(&self) -> usize {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        if self.seconds.is_some() { 1 } else { all }
    }
}

/// Plays a target, and says what is wrong.
#[expect(clippy::print_stdout, reason = "who runs a test sees its output, and only then")]
fn tried(asked: &Asked, target: &Target) -> Option<String> {
    let plan = asked.plan(target);
    let report = match &asked.input {
        Some(input) => replay(target, plan, input.clone()),
        None => play(target, plan),
    };
    let slowest = findings().join(format!("{}.slowest", target.name));
    std::fs::write(slowest, &report.slowest.1).expect("the input can be written down");
    println!("{}", told(target, &report));
    if asked.input.is_some() {
        println!("{}", report.answer);
    }
    let Harm { input, what } = report.harm?;
    let file = findings().join(format!("{}.harm", target.name));
    std::fs::write(&file, &input).expect("the input can be written down");
    let shown = input[..input.len().min(2_000)].escape_ascii();
    Some(format!(
        "{}, seed {}: {what}\nby {} ({} bytes): {shown}",
        target.name,
        asked.seed,
        file.display(),
        input.len()
    ))
}

/// What came of a target, in a line.
fn told(target: &Target, report: &Report) -> String {
    let Report { inputs, taken, kept, slowest, time, .. } = report;
    let each_second = u128::from(*inputs) * 1_000 / time.as_millis().max(1);
    format!(
        "{:<16} {inputs:>9} inputs, {:>3} % taken, {kept:>5} kept, {each_second:>7}/s, slowest {:>5} ms of {} bytes",
        target.name,
        taken * 100 / inputs.max(&1),
        slowest.0.as_millis(),
        slowest.1.len(),
    )
}

#[test]
fn inputs_do_no_harm() {
    let asked = Asked::read();
    let chosen = asked.targets();
    assert!(
        !chosen.is_empty(),
        "no target has this name: {}",
        TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ")
    );
    let rest = Mutex::new(chosen.into_iter());
    let harm = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..asked.threads() {
            let thread = std::thread::Builder::new().stack_size(asked.stack_bytes());
            let plays = || {
                loop {
                    let Some(target) = rest.lock().next() else { break };
                    let found = tried(&asked, target);
                    harm.lock().extend(found);
                }
            };
            thread.spawn_scoped(scope, plays).expect("a thread");
        }
    });
    let harm = harm.into_inner();
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}

/// Every folder of inputs is some target's, and no target's inputs are all refused: it would see nothing but its door.
#[test]
fn every_folder_of_inputs_is_played_and_some_of_each_is_taken() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut folders: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of inputs")
        .map(|entry| entry.expect("a folder").file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(folders, names);
    for target in TARGETS {
        let mut player = (target.player)();
        let taken = engine::corpus(target.name).iter().any(|input| matches!(player(input), Answer::Taken(_)));
        assert!(taken, "{}: no input is taken", target.name);
    }
}

/// The engine sees what it looks for: a panic that takes some finding, also one that somebody catches, and work without end.
#[test]
fn harm_is_found() {
    let fragile = Target {
        name: "quantities",
        words: &["Ki"],
        made: None,
        inputs: 0,
        player: || {
            Box::new(|input| {
                let sound =
                    std::panic::catch_unwind(|| assert!(!input.windows(4).any(|part| part == b"KiKi"), "twice"));
                drop(sound);
                Answer::Taken(String::from_utf8_lossy(input).into_owned())
            })
        },
    };
    let plan = Plan { seed: 1, until: Until::Inputs(100_000), work: Duration::from_millis(100), longest: 1_000 };
    let found = play(&fragile, plan).harm.expect("it is found");
    assert!(found.what.ends_with(": twice"), "{}", found.what);
    assert_eq!(found.input, b"KiKi", "and nothing else of the input");

    let slow = Target {
        player: || {
            Box::new(|_| {
                let start = guard::wall();
                while guard::wall() - start < Duration::from_secs(2) {}
                Answer::nothing()
            })
        },
        ..fragile
    };
    let found = play(&slow, plan).harm.expect("it is found");
    assert!(found.what.starts_with("it took "), "{}", found.what);
}
