//! Terminal sizes: a sequence of JSON objects with nothing between them.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::pipe::{BoxRead, BoxWrite};

/// The most bytes of an unfinished object that are kept.
const MAX_PENDING_BYTES: usize = 4 * 1024;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// Receives sizes.
pub struct ResizeEvents {
    from: BoxRead,
    pending: Vec<u8>,
}

/// Sends sizes.
pub struct ResizeSender {
    to: BoxWrite,
}

impl ResizeEvents {
    pub(crate) fn new(from: BoxRead) -> Self {
        Self { from, pending: Vec::new() }
    }

    /// The next size; `None` at the end and after anything that is not a size: a broken sender ends resizing, not the
    /// session.
    pub async fn next(&mut self) -> Option<TerminalSize> {
        loop {
            match take_size(&mut self.pending) {
                Taken::Size(size) => return Some(size),
                Taken::Broken => return None,
                Taken::Incomplete if self.pending.len() > MAX_PENDING_BYTES => return None,
                Taken::Incomplete => {}
            }
            let mut piece = [0; 512];
            let read = self.from.read(&mut piece).await.ok()?;
            if read == 0 {
                return None;
            }
            self.pending.extend(piece.iter().take(read));
        }
    }
}

enum Taken {
    Size(TerminalSize),
    Incomplete,
    Broken,
}

/// Takes one whole object off the front.
fn take_size(pending: &mut Vec<u8>) -> Taken {
    let mut objects = serde_json::Deserializer::from_slice(pending).into_iter::<Value>();
    let size = match objects.next() {
        None => return Taken::Incomplete,
        Some(Err(error)) if error.is_eof() => return Taken::Incomplete,
        Some(Err(_)) => return Taken::Broken,
        Some(Ok(value)) => size_of(&value),
    };
    let used = objects.byte_offset();
    pending.drain(..used.min(pending.len()));
    size.map_or(Taken::Broken, Taken::Size)
}

/// Member names are matched in any case; an absent one is 0, as decoders in Go have it.
fn size_of(value: &Value) -> Option<TerminalSize> {
    let object = value.as_object()?;
    let member = |name: &str| {
        let found = object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or(Some(0), |(_, value)| u16::try_from(value.as_u64()?).ok())
    };
    Some(TerminalSize { width: member("width")?, height: member("height")? })
}

impl ResizeSender {
    pub(crate) fn new(to: BoxWrite) -> Self {
        Self { to }
    }

    /// Sends a size.
    ///
    /// # Errors
    /// When the stream or its connection has ended.
    pub async fn send(&mut self, size: TerminalSize) -> io::Result<()> {
        let text = format!("{{\"Width\":{},\"Height\":{}}}\n", size.width, size.height);
        self.to.write_all(text.as_bytes()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sizes(bytes: &'static [u8]) -> Vec<(u16, u16)> {
        let mut events = ResizeEvents::new(Box::pin(bytes));
        let mut all = Vec::new();
        while let Some(size) = events.next().await {
            all.push((size.width, size.height));
        }
        all
    }

    #[tokio::test]
    async fn objects_need_no_separator_and_any_case() {
        assert_eq!(
            sizes(br#"{"Width":80,"Height":24}{"width":1,"HEIGHT":2} {"Width":0}"#).await,
            [(80, 24), (1, 2), (0, 0)]
        );
    }

    #[tokio::test]
    async fn a_broken_object_ends_resizing() {
        assert_eq!(sizes(br#"{"Width":80,"Height":24}{"Width":70000}{"Width":1}"#).await, [(80, 24)]);
        assert_eq!(sizes(b"nonsense").await, []);
        assert_eq!(sizes(br#"{"Width":80,"Hei"#).await, []);
    }
}
