//! PEM text blocks, with the details that API validation asks about: the label, and whether a block carries headers.
//!
//! As in Go's decoder, text outside blocks is ignored and a malformed block is skipped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const LINE_BYTES: usize = 64;

/// One decoded PEM block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PemBlock {
    /// The text after `BEGIN`, for example `CERTIFICATE`.
    pub label: String,
    /// Whether `Key: value` lines preceded the data (encrypted legacy keys do that).
    pub has_headers: bool,
    /// The decoded bytes.
    pub der: Vec<u8>,
}

/// All well-formed blocks of `text`, in order.
#[must_use]
pub fn parse_blocks(text: &[u8]) -> Vec<PemBlock> {
    let text = String::from_utf8_lossy(text);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(label) = delimiter(line, "-----BEGIN ") else { continue };
        let mut ahead = lines.clone();
        if let Some(block) = read_block(label, &mut ahead) {
            blocks.push(block);
            lines = ahead;
        }
    }
    blocks
}

fn delimiter<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.trim().strip_prefix(start)?.strip_suffix("-----")
}

fn read_block<'a>(label: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<PemBlock> {
    let mut has_headers = false;
    let mut body = String::new();
    for line in lines {
        if let Some(end) = delimiter(line, "-----END ") {
            let der = (end == label).then(|| STANDARD.decode(&body).ok()).flatten()?;
            return Some(PemBlock { label: label.to_owned(), has_headers, der });
        }
        if line.starts_with("-----BEGIN ") {
            return None;
        }
        if line.contains(':') {
            has_headers = true;
        } else {
            body.extend(line.chars().filter(|c| !c.is_ascii_whitespace()));
        }
    }
    None
}

/// `der` as one PEM block with 64-column lines and a final newline.
#[must_use]
pub fn encode_block(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for (index, symbol) in body.chars().enumerate() {
        if index > 0 && index % LINE_BYTES == 0 {
            out.push('\n');
        }
        out.push(symbol);
    }
    if !body.is_empty() {
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_round_trip_amid_noise() {
        let first = encode_block("CERTIFICATE", &[1; 100]);
        let second = encode_block("PUBLIC KEY", &[2; 48]);
        let text = format!("# a comment\n{first}between\n{second}trailing");
        let blocks = parse_blocks(text.as_bytes());
        assert_eq!(blocks.iter().map(|b| b.label.as_str()).collect::<Vec<_>>(), ["CERTIFICATE", "PUBLIC KEY"]);
        assert_eq!(blocks[0].der, [1; 100]);
        assert!(first.lines().all(|line| line.len() <= LINE_BYTES));
    }

    #[test]
    fn malformed_blocks_are_skipped_and_headers_seen() {
        let good = encode_block("CERTIFICATE", b"ok");
        for broken in [
            "-----BEGIN X-----\n!!!\n-----END X-----\n",
            "-----BEGIN X-----\nAAAA\n-----END Y-----\n",
            "-----BEGIN X-----\n",
        ] {
            let blocks = parse_blocks(format!("{broken}{good}").as_bytes());
            assert_eq!(blocks.len(), 1, "{broken}");
        }
        let headed = parse_blocks(b"-----BEGIN X-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END X-----");
        assert!(headed[0].has_headers);
        assert_eq!(headed[0].der, [0, 0, 0]);
    }
}
