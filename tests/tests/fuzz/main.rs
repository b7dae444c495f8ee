//! What comes from outside, made up: whatever the bytes are, nobody panics, works without end, or forgets what he has read.
//! Each target plays the inputs of its folder in `tests/corpus` and some thousand more that are made of them; `make fuzz`
//! goes on for longer. An input that did harm is written down; once mended, it goes into the folder.

mod engine;
mod mutate;
mod targets;

use std::time::Duration;

use engine::{Harm, Plan, Target, Until, play};
use targets::TARGETS;

/// How many inputs each target gets where `COXSWAIN_FUZZ_SECONDS` does not say how long it plays.
const INPUTS: u64 = 3_000;
/// What a single input may take of a processor: far beyond what any of this length needs, without optimization, too.
const WORK: Duration = Duration::from_secs(10);

/// Plays a target, and says what is wrong.
#[expect(clippy::print_stdout, reason = "who runs a test sees its output, and only then")]
fn tried(target: &Target) -> Option<String> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let until =
        number("COXSWAIN_FUZZ_SECONDS").map_or(Until::Inputs(INPUTS), |own| Until::Time(Duration::from_secs(own)));
    let seed = number("COXSWAIN_FUZZ_SEED").unwrap_or(1);
    let report = play(target, Plan { seed, until, work: WORK });
    println!("{}: {} inputs, {} answers that differ", target.name, report.inputs, report.answers);
    let Harm { input, what } = report.harm?;
    let file = std::env::temp_dir().join(format!("coxswain-fuzz-{}-{seed}", target.name));
    std::fs::write(&file, &input).expect("the input can be written down");
    Some(format!("{}: {what}\nby {}: {}", target.name, file.display(), input.escape_ascii()))
}

#[test]
fn inputs_do_no_harm() {
    let chosen = std::env::var("COXSWAIN_FUZZ_TARGET").ok();
    let chosen: Vec<&Target> =
        TARGETS.iter().filter(|target| chosen.as_deref().is_none_or(|name| name == target.name)).collect();
    assert!(!chosen.is_empty(), "no target has this name");
    let next = std::sync::atomic::AtomicUsize::new(0);
    let harm = parking_lot::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(target) = chosen.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    harm.lock().extend(tried(target));
                }
            });
        }
    });
    let harm = harm.into_inner();
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}

/// Every folder of inputs is some target's.
#[test]
fn every_folder_of_inputs_is_played() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut folders: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of inputs")
        .map(|entry| entry.expect("a folder").file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(folders, names);
}

/// The engine sees what it looks for: a panic that takes some finding, and work without end.
#[test]
fn harm_is_found() {
    let fragile = Target {
        name: "quantities",
        words: &["Ki"],
        player: || {
            Box::new(|input| {
                assert!(!input.windows(4).any(|part| part == b"KiKi"), "twice");
                String::from_utf8_lossy(input).into_owned()
            })
        },
    };
    let plan = Plan { seed: 1, until: Until::Inputs(100_000), work: Duration::from_millis(100) };
    let found = play(&fragile, plan).harm.expect("it is found");
    assert_eq!(found.what, "twice");

    let slow = Target {
        player: || {
            Box::new(|_| {
                let start = std::time::Instant::now();
                while start.elapsed() < Duration::from_secs(2) {}
                String::new()
            })
        },
        ..fragile
    };
    let found = play(&slow, plan).harm.expect("it is found");
    assert!(found.what.starts_with("it took "), "{}", found.what);
}
