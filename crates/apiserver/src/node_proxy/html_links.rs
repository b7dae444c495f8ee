//! Finds the links of an HTML page while it passes by, so that those to the page's own server can be led through the
//! proxy. Everything else stays byte for byte as it is.
//!
//! The page is whatever a pod sends. So each byte is looked at once, whatever came before it, and nothing but the name
//! or the value that is being read is kept back.

/// A longer value is no link that anybody wrote; it passes as it is.
const LINK_MAX: usize = 8 * 1024;
/// No element or attribute that matters here has a longer name.
const NAME_MAX: usize = 16;

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
const COMMENT: &[u8] = b"!--";
const COMMENT_END: &[u8] = b"-->";

/// A page on its way.
pub(super) struct HtmlLinks<F> {
    /// What a link becomes; `None` leaves it.
    rewrite: F,
    at: At,
    /// The name that is being read, in small letters; longer ones are cut.
    name: Vec<u8>,
    /// The value that is being read, if it may be rewritten. It has not passed yet.
    value: Vec<u8>,
    element: Element,
}

/// Where in the page the next byte is.
#[derive(Clone, Copy)]
enum At {
    Text,
    /// Behind a `<`.
    Open,
    /// Behind a `<` and this many bytes of [`COMMENT`].
    CommentOpen(usize),
    /// Behind this many bytes of [`COMMENT_END`], in a comment.
    Comment(usize),
    /// In an element whose text has no tags, behind this many bytes of its end.
    Raw(&'static [u8], usize),
    ElementName,
    /// In a tag, before an attribute or the end of the tag.
    Tag,
    AttributeName,
    /// Behind an attribute's name and a space.
    AttributeNamed,
    /// Behind a `=`.
    Equals,
    /// In a value, behind its quote if it has one.
    Value(Option<u8>, Fate),
}

/// What becomes of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It has passed as far as it was read.
    Passes,
    /// It is kept back until it is whole.
    IsLink,
}

/// What of the element whose tag is read matters.
#[derive(Clone, Copy, Default)]
struct Element {
    links: &'static [&'static str],
    /// What ends its text, if that has no tags.
    raw: Option<&'static [u8]>,
}

impl Element {
    fn named(name: &[u8]) -> Self {
        let links = LINKS.iter().find(|(element, _)| element.as_bytes() == name).map_or(&[][..], |(_, links)| links);
        let raw = RAW.iter().find(|(element, _)| element.as_bytes() == name).map(|(_, end)| *end);
        Self { links, raw }
    }
}

impl<F: Fn(&str) -> Option<String>> HtmlLinks<F> {
    pub(super) fn new(rewrite: F) -> Self {
        Self { rewrite, at: At::Text, name: Vec::new(), value: Vec::new(), element: Element::default() }
    }

    /// Takes the next bytes and gives those that are done.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut done = Vec::with_capacity(bytes.len() + self.value.len());
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            if matches!(self.at, At::Text) {
                // Most of a page is text.
                let length = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
                let (text, markup) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                done.extend_from_slice(text);
                let Some((open, behind)) = markup.split_first() else { break };
                done.push(*open);
                self.at = At::Open;
                rest = behind;
                continue;
            }
            self.at = self.step(byte, &mut done);
            rest = behind;
        }
        done
    }

    /// What is left at the end of the page.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.value)
    }

    /// Reads one byte, passes it on unless it is kept back, and says where the next one is.
    fn step(&mut self, byte: u8, done: &mut Vec<u8>) -> At {
        if let At::Value(quote, fate) = self.at {
            return self.in_value(byte, quote, fate, done);
        }
        if let At::Equals = self.at
            && !matches!(byte, b'=' | b'"' | b'\'' | b'>')
            && !byte.is_ascii_whitespace()
        {
            let fate = self.fate();
            return self.in_value(byte, None, fate, done);
        }
        done.push(byte);
        match self.at {
            At::Text | At::Value(..) => self.at,
            At::Open => self.behind_open(byte),
            At::CommentOpen(matched) => after_comment_open(byte, matched),
            At::Comment(matched) => match matched_until(COMMENT_END, matched, byte) {
                Some(matched) => At::Comment(matched),
                None => At::Text,
            },
            At::Raw(end, matched) => match matched_until(end, matched, byte) {
                Some(matched) => At::Raw(end, matched),
                None => At::Text,
            },
            At::ElementName => self.in_element_name(byte),
            At::Tag | At::AttributeNamed | At::AttributeName => self.in_tag(byte),
            At::Equals => match byte {
                b'>' => self.tag_end(),
                b'"' | b'\'' => At::Value(Some(byte), self.fate()),
                _ => At::Equals,
            },
        }
    }

    fn behind_open(&mut self, byte: u8) -> At {
        match byte {
            b'!' => At::CommentOpen(1),
            b'<' => At::Open,
            _ if byte.is_ascii_alphabetic() => {
                self.start_name(byte);
                At::ElementName
            }
            _ => At::Text,
        }
    }

    fn in_element_name(&mut self, byte: u8) -> At {
        if !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>') {
            self.continue_name(byte);
            return At::ElementName;
        }
        self.element = Element::named(&self.name);
        if byte == b'>' { self.tag_end() } else { At::Tag }
    }

    /// Outside of values.
    fn in_tag(&mut self, byte: u8) -> At {
        match (byte, self.at) {
            (b'>', _) => self.tag_end(),
            (b'=', At::AttributeName | At::AttributeNamed) => At::Equals,
            (b'/' | b'=', _) => At::Tag,
            (_, At::AttributeName) if byte.is_ascii_whitespace() => At::AttributeNamed,
            (_, at) if byte.is_ascii_whitespace() => at,
            (_, At::AttributeName) => {
                self.continue_name(byte);
                At::AttributeName
            }
            (b'"' | b'\'', _) => At::Tag,
            _ => {
                self.start_name(byte);
                At::AttributeName
            }
        }
    }

    fn in_value(&mut self, byte: u8, quote: Option<u8>, fate: Fate, done: &mut Vec<u8>) -> At {
        let ends = match quote {
            Some(quote) => byte == quote,
            None => byte.is_ascii_whitespace() || byte == b'>',
        };
        if ends {
            let value = std::mem::take(&mut self.value);
            let link = if fate == Fate::IsLink { self.link(&value) } else { None };
            done.extend_from_slice(link.as_deref().map_or(&value, str::as_bytes));
            done.push(byte);
            return if quote.is_none() && byte == b'>' { self.tag_end() } else { At::Tag };
        }
        if fate == Fate::Passes {
            done.push(byte);
            return At::Value(quote, fate);
        }
        self.value.push(byte);
        if self.value.len() <= LINK_MAX {
            return At::Value(quote, fate);
        }
        done.append(&mut self.value);
        At::Value(quote, Fate::Passes)
    }

    fn tag_end(&self) -> At {
        self.element.raw.map_or(At::Text, |end| At::Raw(end, 0))
    }

    /// What becomes of the value of the attribute that was read last.
    fn fate(&self) -> Fate {
        let is_link = self.element.links.iter().any(|link| link.as_bytes() == self.name);
        if is_link { Fate::IsLink } else { Fate::Passes }
    }

    fn start_name(&mut self, byte: u8) {
        self.name.clear();
        self.continue_name(byte);
    }

    fn continue_name(&mut self, byte: u8) {
        if self.name.len() < NAME_MAX {
            self.name.push(byte.to_ascii_lowercase());
        }
    }

    fn link(&self, value: &[u8]) -> Option<String> {
        (self.rewrite)(std::str::from_utf8(value).ok()?.trim())
    }
}

fn after_comment_open(byte: u8, matched: usize) -> At {
    if COMMENT.get(matched) != Some(&byte) {
        return if byte == b'<' { At::Open } else { At::Text };
    }
    // `<!-->` is a whole comment.
    if matched + 1 == COMMENT.len() { At::Comment(2) } else { At::CommentOpen(matched + 1) }
}

/// How many bytes of a text were read with this one, in letters of any case; `None` for all of it.
///
/// The texts are such that only their own beginning, or a repeated dash, can begin anew in them.
fn matched_until(text: &[u8], matched: usize, byte: u8) -> Option<usize> {
    let is = |at: usize| text.get(at).is_some_and(|wanted| wanted.eq_ignore_ascii_case(&byte));
    if is(matched) {
        return (matched + 1 < text.len()).then_some(matched + 1);
    }
    if !is(0) {
        return Some(0);
    }
    // Behind `--`, one dash more still leaves two.
    Some(if text == COMMENT_END && matched == 2 { 2 } else { 1 })
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
            ("<!---> <a href='/x'> --><a href=/y>", "<!---> <a href='/p/x'> --><a href=/p/y>"),
            ("<!-- -- ---><a href='/x'>", "<!-- -- ---><a href='/p/x'>"),
            ("<!-<a href='/x'><<a href='/y'>", "<!-<a href='/p/x'><<a href='/p/y'>"),
            ("<style></styl</STYLE><a href='/x'>", "<style></styl</STYLE><a href='/p/x'>"),
            ("<a href==/x><a href=>/y<a / href=/z>", "<a href==/p/x><a href=>/y<a / href=/p/z>"),
        ];
        for (page, expected) in cases {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(rewritten(page, piece), expected, "in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_is_kept_back_is_bounded() {
        for (start, kept) in [("<a href=\"", LINK_MAX + 1), ("<a title=\"", 0), ("<", NAME_MAX), ("<a ", NAME_MAX)] {
            let mut links = HtmlLinks::new(|_: &str| None);
            let page = [start.as_bytes(), &vec![b'x'; 4 * LINK_MAX]].concat();
            let mut done = Vec::new();
            for byte in &page {
                done.extend(links.push(&[*byte]));
                assert!(links.value.len() + links.name.len() <= kept + NAME_MAX, "{start}");
            }
            done.extend(links.finish());
            assert_eq!(done, page, "{start}");
        }
    }

    /// Each of these made the reader look again and again at what follows, so that 512 KiB took minutes.
    #[test]
    fn hostile_pages_take_a_time_in_proportion_to_their_length() {
        let pieces =
            ["<a", "<a ", "<a href=\"", "<a title='", "<!-", "<!--", "<script>", "<script></script", "<a b=", "<"];
        for hostile in pieces {
            let page = hostile.repeat((1 << 19) / hostile.len());
            for size in [page.len(), 7] {
                let mut links = HtmlLinks::new(|_: &str| None);
                let done: usize = page.as_bytes().chunks(size).map(|piece| links.push(piece).len()).sum();
                assert_eq!(done + links.finish().len(), page.len(), "{hostile} in pieces of {size}");
            }
        }
    }
}
