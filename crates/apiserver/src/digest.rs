//! The tags of documents.

use std::hash::{Hash, Hasher};
use std::io::{self, Write};

use component_base::version;
use sha2::{Digest as _, Sha512};

/// SHA-512 in upper-case hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hexadecimal(Sha512::new_with_prefix(bytes))
}

/// The tag of a document by what it is made of and by the build that makes it, which is less work than to make it.
/// Servers of one build agree.
pub(crate) fn digest_of(source: &impl Hash) -> String {
    let mut state = State(Sha512::new());
    version::facts().hash(&mut state);
    source.hash(&mut state);
    hexadecimal(state.0)
}

/// What is written goes on, and into the tag that [`digest`] would give all of it.
pub(crate) struct Digesting<W> {
    out: W,
    state: Sha512,
    bytes: usize,
}

impl<W: Write> Digesting<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, state: Sha512::new(), bytes: 0 }
    }

    /// What was written to, the tag of what was written, and how many bytes that were.
    pub(crate) fn finish(self) -> (W, String, usize) {
        (self.out, hexadecimal(self.state), self.bytes)
    }
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.state.update(bytes.get(..written).unwrap_or(bytes));
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn hexadecimal(digest: Sha512) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Takes all that is hashed into a digest. Numbers go in as they lie in memory, which is the same on all platforms that
/// there are builds for.
struct State(Sha512);

impl Hasher for State {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_apart_what_differs_and_nothing_else() {
        assert!(digest(b"").starts_with("CF83E1357EEFB8BD"));
        let source = |text: &str| (text.to_owned(), vec![Some(1), None], serde_json::json!({"a": [text, 1]}));
        assert_eq!(digest_of(&source("x")), digest_of(&source("x")));
        assert_ne!(digest_of(&source("x")), digest_of(&source("y")));
        assert_ne!(digest_of(&("a", "bc")), digest_of(&("ab", "c")), "where one ends counts");
        assert_eq!(digest_of(&"").len(), 128);
        let mut written = Digesting::new(Vec::new());
        ["some ", "", "words"].iter().for_each(|part| written.write_all(part.as_bytes()).unwrap());
        assert_eq!(written.finish(), (b"some words".to_vec(), digest(b"some words"), 10));
    }
}
