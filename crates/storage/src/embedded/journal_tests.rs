use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

const MARK: Mark = *b"our mark";

/// A file in memory.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl JournalFile for Memory {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().clone())
    }

    fn write_all(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut content, start) = (self.0.lock(), usize::try_from(offset).expect("small"));
        let end = start + bytes.len();
        let length = content.len().max(end);
        content.resize(length, 0);
        content[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn open(halves: &[Memory; 2], after: u64) -> Result<(Journal, Vec<String>), JournalError> {
    let files = halves.clone().map(|half| Box::new(half) as Box<dyn JournalFile>);
    let (journal, payloads) = Journal::open(files, MARK, after, 1 << 20)?;
    Ok((journal, payloads.into_iter().map(|bytes| String::from_utf8(bytes).expect("text")).collect()))
}

fn append(journal: &mut Journal, payloads: &[&str]) {
    for payload in payloads {
        journal.append(payload.as_bytes()).expect("there is room");
    }
}

/// One half with three commits, and the offsets at which they begin.
fn three() -> ([Memory; 2], [usize; 3]) {
    let halves = [Memory::default(), Memory::default()];
    let (mut journal, found) = open(&halves, 0).expect("an empty journal");
    assert!(found.is_empty());
    append(&mut journal, &["one", &"2".repeat(700), "three"]);
    (halves, [0, 512, 512 + 1024])
}

#[test]
fn what_the_database_has_is_not_read_again() {
    let (halves, _) = three();
    for (after, count) in [(0, 3), (1, 2), (2, 1), (3, 0), (9, 0)] {
        let (journal, found) = open(&halves, after).expect("whole");
        assert_eq!((found.len(), journal.sequence()), (count, after.max(3)));
    }
}

#[test]
fn a_broken_last_commit_was_never_acknowledged_and_is_written_over() {
    let (halves, [.., third]) = three();
    halves[0].0.lock()[third + HEAD_BYTES] ^= 1;
    let (mut journal, found) = open(&halves, 0).expect("its end is torn");
    assert_eq!((found.len(), journal.sequence()), (2, 2));
    append(&mut journal, &["other"]);
    assert_eq!(open(&halves, 0).expect("whole").1.last().map(String::as_str), Some("other"));
}

#[test]
fn a_broken_commit_before_a_whole_one_is_damage() {
    let (_, starts) = three();
    for start in &starts[..2] {
        for byte in [0, 5, 12, 20, HEAD_BYTES] {
            let (halves, _) = three();
            halves[0].0.lock()[start + byte] ^= 0x10;
            let error = open(&halves, 0).expect_err("a commit is lost");
            assert!(matches!(error, JournalError::Gap { has: 3, .. }), "{error}");
        }
    }
}

#[test]
fn what_is_within_a_value_or_of_another_store_is_not_a_frame() {
    let (halves, _) = three();
    // Behind the last frame, where a recycled file has old values: frames that somebody else made.
    let foreign = frame(&Seal::new(*b"not ours"), 9, b"planted").expect("short");
    halves[0].0.lock().splice(4_096..4_096 + foreign.len(), foreign);
    assert_eq!(open(&halves, 0).expect("whole").1.len(), 3);
    halves[0].0.lock().splice(8_192..8_704, frame(&Seal::new(MARK), 9, b"ours").expect("short"));
    assert!(open(&halves, 0).is_err());
}

/// As a version left it that wrote format 2.
#[test]
fn a_journal_with_former_digests_is_read_and_continued() {
    let (halves, begins) = three();
    let seal = Seal::new(MARK);
    for begin in begins {
        let mut image = halves[0].0.lock();
        let Frame { sequence, payload, .. } = frame_at(&image, &seal, begin).expect("whole");
        let length = u32::try_from(payload.len()).expect("short");
        let digest = seal.former_digest(Numbers { length, sequence }, payload);
        image[begin + HEAD_BYTES - DIGEST_BYTES..begin + HEAD_BYTES].copy_from_slice(&digest);
    }
    let (mut journal, found) = open(&halves, 0).expect("whole");
    assert_eq!((found.len(), journal.sequence()), (3, 3));
    append(&mut journal, &["four"]);
    assert_eq!(open(&halves, 0).expect("whole").1.last().map(String::as_str), Some("four"));
    // They are checked as well.
    halves[0].0.lock()[begins[1] + HEAD_BYTES] ^= 1;
    assert!(matches!(open(&halves, 0), Err(JournalError::Gap { .. })));
}

#[test]
fn a_digest_is_of_the_mark_the_numbers_and_the_payload() {
    let seal = Seal::new(MARK);
    let numbers = Numbers { length: 4, sequence: 7 };
    assert_eq!(Numbers::from_bytes(&numbers.to_bytes()), numbers);
    let digest = seal.digest(numbers, b"four").expect("a key");
    assert!(seal.is_whole(numbers, b"four", &digest));
    for (seal, numbers, payload) in [
        (Seal::new(*b"our mask"), numbers, b"four"),
        (Seal::new(MARK), Numbers { length: 5, ..numbers }, b"four"),
        (Seal::new(MARK), Numbers { sequence: 8, ..numbers }, b"four"),
        (Seal::new(MARK), numbers, b"fous"),
    ] {
        assert!(!seal.is_whole(numbers, payload, &digest), "{numbers:?} {payload:?}");
    }
}

#[test]
fn a_commit_that_is_missing_is_damage() {
    let (halves, _) = three();
    let (mut journal, _) = open(&halves, 3).expect("whole");
    // The database has them: they are written over.
    append(&mut journal, &["four"]);
    assert!(open(&halves, 3).expect("whole").1 == ["four"]);
    assert_eq!(open(&halves, 0).expect_err("1 to 3 are gone").to_string(), "the journal lacks commit 1");
}

#[test]
fn the_halves_take_turns_once_the_database_has_caught_up() {
    let halves = [Memory::default(), Memory::default()];
    let (mut journal, _) = open(&halves, 0).expect("an empty journal");
    append(&mut journal, &["1", "2", "3"]);
    journal.turn();
    append(&mut journal, &["4"]);
    // The database has not caught up: there is nothing to turn to.
    journal.turn();
    append(&mut journal, &["5"]);
    assert_eq!(open(&halves, 0).expect("whole").1, ["1", "2", "3", "4", "5"]);
    assert_eq!(open(&halves, 3).expect("whole").1, ["4", "5"]);
    journal.free_other();
    journal.turn();
    append(&mut journal, &["6"]);
    // What is left of the first turn behind it is older.
    assert_eq!(open(&halves, 3).expect("whole").1, ["4", "5", "6"]);
    let (mut journal, found) = open(&halves, 5).expect("whole");
    assert_eq!(found, ["6"]);
    append(&mut journal, &["7"]);
    assert_eq!(open(&halves, 4).expect("whole").1, ["5", "6", "7"]);
}

#[test]
fn any_prefix_and_any_garbage_is_read_without_a_panic() {
    let (halves, _) = three();
    let image = halves[0].0.lock().clone();
    for length in (0..2_600).chain([image.len()]) {
        let cut = [Memory(Arc::new(Mutex::new(image[..length].to_vec()))), Memory::default()];
        let (_, found) = open(&cut, 0).expect("a prefix is a journal");
        assert!(found.len() <= 3);
    }
    let rng = base::Rng::seeded(3);
    for _ in 0..200 {
        let garbage = (0..2_048).map(|_| u8::try_from(rng.below(256)).expect("a byte")).collect();
        assert!(open(&[Memory(Arc::new(Mutex::new(garbage))), Memory::default()], 0).expect("nothing").1.is_empty());
    }
}
