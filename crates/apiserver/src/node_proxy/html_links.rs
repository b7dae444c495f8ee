//! Finds the links of an HTML page while it passes by, so that those to the page's own server can be led through the
//! proxy. Everything else stays byte for byte as it is.

/// A tag that is longer is no tag that anybody wrote; it passes unread.
const TAG_MAX: usize = 64 * 1024;

/// Where elements name other resources.
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];
/// Elements whose text has no tags but their own end.
const RAW: &[(&str, &[u8])] = &[
    ("script", b"</script"),
    ("style", b"</style"),
    ("textarea", b"</textarea"),
    ("title", b"</title"),
    ("xmp", b"</xmp"),
];
const COMMENT: &[u8] = b"<!--";
const COMMENT_END: &[u8] = b"-->";

/// A page on its way.
pub(super) struct HtmlLinks<F> {
    /// What a link becomes; `None` leaves it.
    rewrite: F,
    /// What is read and not yet told apart: less than one tag.
    pending: Vec<u8>,
    /// Inside a comment or an element without tags: what ends it.
    until: Option<&'static [u8]>,
}

impl<F: Fn(&str) -> Option<String>> HtmlLinks<F> {
    pub(super) fn new(rewrite: F) -> Self {
        Self { rewrite, pending: Vec::new(), until: None }
    }

    /// Takes the next bytes and gives those that are done.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut page = std::mem::take(&mut self.pending);
        page.extend_from_slice(bytes);
        let mut done = Vec::with_capacity(page.len());
        let mut rest = page.as_slice();
        while let Some(left) = self.step(rest, &mut done) {
            rest = left;
        }
        self.pending = rest.to_vec();
        done
    }

    /// What is left at the end of the page.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Passes one piece on and gives what is behind it; `None` when more is needed to tell.
    fn step<'a>(&mut self, rest: &'a [u8], done: &mut Vec<u8>) -> Option<&'a [u8]> {
        if rest.is_empty() {
            return None;
        }
        if let Some(end) = self.until {
            let Some(at) = find(rest, end) else {
                // The end may begin in what is here.
                let (passed, kept) = rest.split_at_checked(rest.len().saturating_sub(end.len() - 1))?;
                done.extend_from_slice(passed);
                return (!passed.is_empty()).then_some(kept);
            };
            self.until = None;
            let length = if end == COMMENT_END { end.len() } else { 0 };
            return pass(rest, at + length, done);
        }
        let Some(at) = rest.iter().position(|byte| *byte == b'<') else { return pass(rest, rest.len(), done) };
        if at > 0 {
            return pass(rest, at, done);
        }
        self.markup(rest, done)
    }

    /// As [`Self::step`], at a `<`.
    fn markup<'a>(&mut self, rest: &'a [u8], done: &mut Vec<u8>) -> Option<&'a [u8]> {
        if rest.starts_with(COMMENT) {
            self.until = Some(COMMENT_END);
            return pass(rest, COMMENT.len(), done);
        }
        if COMMENT.starts_with(rest) {
            return None;
        }
        if !rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            return pass(rest, 1, done);
        }
        let Some(end) = tag_end(rest) else {
            return if rest.len() > TAG_MAX { pass(rest, 1, done) } else { None };
        };
        let (tag, behind) = rest.split_at_checked(end)?;
        let name = self.tag(tag, done);
        self.until = RAW.iter().find(|(raw, _)| *raw == name).map(|(_, end)| *end);
        Some(behind)
    }

    /// Passes a start tag on, with its links rewritten; gives the element's name.
    fn tag(&self, tag: &[u8], done: &mut Vec<u8>) -> String {
        let mut cursor = Cursor { rest: tag, done };
        cursor.pass(|byte| byte == b'<');
        let name = lower(cursor.pass(|byte| !byte.is_ascii_whitespace() && byte != b'/' && byte != b'>'));
        let links = LINKS.iter().find(|(element, _)| *element == name).map_or(&[][..], |(_, links)| links);
        while !cursor.rest.is_empty() {
            // Closing quotes, too.
            cursor.pass(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=' | b'"' | b'\''));
            let attribute =
                lower(cursor.pass(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>' | b'=')));
            cursor.pass(|byte| byte.is_ascii_whitespace());
            if cursor.rest.first() != Some(&b'=') {
                continue;
            }
            cursor.pass(|byte| byte.is_ascii_whitespace() || byte == b'=');
            let value = cursor.value();
            let rewritten = links.contains(&attribute.as_str()).then(|| self.link(value)).flatten();
            cursor.done.extend_from_slice(rewritten.as_deref().map_or(value, str::as_bytes));
        }
        name
    }

    fn link(&self, value: &[u8]) -> Option<String> {
        (self.rewrite)(std::str::from_utf8(value).ok()?.trim())
    }
}

/// Reads a tag; what is read has passed, except for values.
struct Cursor<'a, 'd> {
    rest: &'a [u8],
    done: &'d mut Vec<u8>,
}

impl<'a> Cursor<'a, '_> {
    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !is_part(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    fn pass(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let passed = self.take(is_part);
        self.done.extend_from_slice(passed);
        passed
    }

    /// A value without its quotes. The opening one has passed, the closing one is read with what comes next.
    fn value(&mut self) -> &'a [u8] {
        match self.rest.first() {
            Some(quote @ (b'"' | b'\'')) => {
                self.done.push(*quote);
                self.rest = self.rest.get(1..).unwrap_or_default();
                self.take(|byte| byte != *quote)
            }
            _ => self.take(|byte| !byte.is_ascii_whitespace() && byte != b'>'),
        }
    }
}

fn pass<'a>(rest: &'a [u8], count: usize, done: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (passed, left) = rest.split_at_checked(count)?;
    done.extend_from_slice(passed);
    Some(left)
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// Where a text begins, in letters of any case.
fn find(rest: &[u8], text: &[u8]) -> Option<usize> {
    rest.windows(text.len()).position(|window| window.eq_ignore_ascii_case(text))
}

/// The length of the tag that begins here. A `>` in a quoted value does not end it.
fn tag_end(rest: &[u8]) -> Option<usize> {
    let (mut quote, mut may_quote) = (None, false);
    for (at, byte) in rest.iter().enumerate() {
        match quote {
            Some(open) if open == *byte => quote = None,
            Some(_) => {}
            None if *byte == b'>' => return Some(at + 1),
            None if may_quote && matches!(byte, b'"' | b'\'') => quote = Some(*byte),
            None => {}
        }
        may_quote = *byte == b'=' || (may_quote && byte.is_ascii_whitespace());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(page: &str, piece: usize) -> String {
        let mut links = HtmlLinks::new(|link: &str| link.starts_with('/').then(|| format!("/p{link}")));
        let mut done: Vec<u8> = page.as_bytes().chunks(piece).flat_map(|piece| links.push(piece)).collect();
        done.extend(links.finish());
        String::from_utf8(done).unwrap()
    }

    #[test]
    fn links_are_rewritten_and_nothing_else() {
        let cases = [
            ("<a href=\"/rewriteme\">test</a>", "<a href=\"/p/rewriteme\">test</a>"),
            ("<A class=x HREF='/x' >/x</A>", "<A class=x HREF='/p/x' >/x</A>"),
            ("<img src=/x.png alt=/x>", "<img src=/p/x.png alt=/x>"),
            ("<a href = \"/a>b\" title=\"/t\">", "<a href = \"/p/a>b\" title=\"/t\">"),
            ("<a href=\"relative\"><a href=\"http://other/\">", "<a href=\"relative\"><a href=\"http://other/\">"),
            ("<!-- <a href=\"/x\"> --><link href=\"/y\"/>", "<!-- <a href=\"/x\"> --><link href=\"/p/y\"/>"),
            (
                "<script src=\"/s.js\">\"<a href='/x'>\"</script><q cite='/y'>",
                "<script src=\"/p/s.js\">\"<a href='/x'>\"</script><q cite='/p/y'>",
            ),
            (
                "1 < 2 <br/> <p title='/x'> <a disabled href='/x'>",
                "1 < 2 <br/> <p title='/x'> <a disabled href='/p/x'>",
            ),
            ("<a href=\"/unfinished", "<a href=\"/unfinished"),
            ("<!doctype html><", "<!doctype html><"),
        ];
        for (page, expected) in cases {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(rewritten(page, piece), expected, "in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_is_kept_back_is_bounded() {
        let mut links = HtmlLinks::new(|_: &str| None);
        let page = [b"<a title=\"".as_slice(), &vec![b'x'; 2 * TAG_MAX]].concat();
        let done = links.push(&page);
        assert_eq!(done.len() + links.finish().len(), page.len());
        assert!(done.len() > TAG_MAX);
    }
}
