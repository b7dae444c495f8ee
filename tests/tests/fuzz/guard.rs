//! Watches over an input while it is played: panics in whatever task, time of a processor, work without end, and memory
//! without bound. The input is written down before it is played, for what nobody can catch: a stack that is full, or a
//! process that the system kills.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::Mutex;

use crate::engine::{Answer, Player};

/// An input that is not through after this time is one that never will be, on however busy a machine.
const HANG: Duration = Duration::from_secs(120);
/// What the process may have in memory: many times what all targets need together.
const MEMORY_BYTES: u64 = 3 << 30;
/// How often the watch looks.
const LOOKS: Duration = Duration::from_millis(200);
/// What the kernel counts memory in.
const PAGE_BYTES: u64 = 4096;

thread_local! {
    /// Panics of the input that this thread plays, with their places; nothing where it plays none.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// The inputs that are played now: of which target, since when.
static PLAYED: Mutex<Vec<(ThreadId, &str, Duration)>> = Mutex::new(Vec::new());

/// Plays the inputs of one target, on one thread.
pub(crate) struct Guarded {
    name: &'static str,
    written: File,
    used: File,
}

impl Guarded {
    pub(crate) fn new(name: &'static str) -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            note_panics();
            std::thread::spawn(watch);
        });
        let written = File::create(last_input(name)).expect("inputs can be written down");
        Self { name, written, used: File::open("/proc/thread-self/schedstat").expect("the kernel counts") }
    }

    /// What an input is answered, or the harm that it did; and what it took of a processor.
    pub(crate) fn play(&mut self, player: &mut Player, input: &[u8]) -> (Result<Answer, String>, Duration) {
        self.written.set_len(0).and_then(|()| self.written.write_all_at(input, 0)).expect("the disk has room");
        let thread = std::thread::current().id();
        PLAYED.lock().push((thread, self.name, wall()));
        PANICS.set(Some(Vec::new()));
        let before = self.used();
        let answer = catch_unwind(AssertUnwindSafe(|| player(input)));
        let used = self.used().saturating_sub(before);
        PLAYED.lock().retain(|(other, ..)| *other != thread);
        let panics = PANICS.take().unwrap_or_default();
        let answer = match (panics.into_iter().next(), answer) {
            (Some(panic), _) => Err(panic),
            (None, answer) => answer.map_err(|_| "a panic without a word".to_owned()),
        };
        (answer, used)
    }

    /// The processor's time that this thread has used: others may keep it waiting.
    fn used(&self) -> Duration {
        let mut text = [0; 64];
        let length = self.used.read_at(&mut text, 0).unwrap_or_default();
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
    }
}

/// Where what is found is written down.
pub(crate) fn findings() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The file that has a target's input while it is played.
pub(crate) fn last_input(name: &str) -> PathBuf {
    findings().join(format!("{name}.last"))
}

/// Time that passes.
#[expect(clippy::disallowed_methods, reason = "how long something real takes")]
pub(crate) fn wall() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// Also of tasks, whose panics nobody else would see.
fn note_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_noted = PANICS.with_borrow_mut(|panics| {
            let Some(panics) = panics else { return false };
            let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
            let text = panic.payload_as_str().unwrap_or_default();
            panics.push(format!("{}: {text}", place.unwrap_or_default()));
            true
        });
        if !is_noted {
            usual(panic);
        }
    }));
}

/// Ends the process where an input does not end, or takes memory without bound: nothing else would.
#[expect(clippy::print_stderr, reason = "the process ends, and nobody reads what the test has printed")]
fn watch() {
    loop {
        std::thread::sleep(LOOKS);
        let played = PLAYED.lock().clone();
        let memory = resident_bytes();
        for (_, name, since) in played {
            let took = wall().saturating_sub(since);
            if took > HANG || memory > MEMORY_BYTES {
                let file = last_input(name);
                eprintln!("{name}: after {took:?}, with {} MiB, it plays {}", memory >> 20, file.display());
                std::process::abort();
            }
        }
    }
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * PAGE_BYTES
}
