//! Regular expressions of schemas. They are written for Go, whose classes and escapes mean other things here and there
//! than those of this crate's engine: `\d` is ten digits, and a bracket within brackets is a bracket.
//! Syntax: <https://github.com/google/re2/wiki/Syntax>

use std::iter::Peekable;
use std::str::CharIndices;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

/// A state machine of this size is never too large, whatever is made of it: the limit is ten times as high.
const SMALL_BYTES: usize = 1 << 20;
/// The largest number of repetitions.
const MAX_REPEAT: u32 = 1000;
const DIGITS: &str = "0-9";
const SPACES: &str = r"\t\n\x0C\r ";
const WORDS: &str = "0-9A-Za-z_";

/// An expression of a schema. It is compiled for the first value that it looks at: most schemas that there are never see
/// one, and what is compiled is large.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Box<str>,
    /// Nothing where it is no expression, which the rules for definitions refuse.
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) fn new(source: &str) -> Self {
        Self { source: source.into(), compiled: OnceLock::new() }
    }

    /// As it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether a text is as it says.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.source).ok());
        compiled.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

/// Reads an expression.
///
/// # Errors
/// What is wrong with it, as Go says it where that is known here.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translation::of(pattern).map_err(problem)?;
    RegexBuilder::new(&translated).octal(true).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => problem("expression too large".into()),
        other => problem(other.to_string().lines().last().unwrap_or_default().trim().to_owned()),
    })
}

/// Whether an expression can be read: what [`compile`] would find wrong with it, without the search engine that it makes,
/// which is most of its work.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    let translated = Translation::of(pattern).map_err(problem)?;
    let (small, octal) = (thompson::Config::new().nfa_size_limit(Some(SMALL_BYTES)), syntax::Config::new().octal(true));
    let read = thompson::Compiler::new().configure(small).syntax(octal).build(&translated);
    // What is large may be too large, and has to say so as it always does.
    read.map(drop).or_else(|_| compile(pattern).map(drop))
}

fn problem(text: String) -> String {
    format!("error parsing regexp: {text}")
}

struct Translation<'p> {
    pattern: &'p str,
    rest: Peekable<CharIndices<'p>>,
    out: String,
    open: usize,
}

impl<'p> Translation<'p> {
    fn of(pattern: &'p str) -> Result<String, String> {
        let mut all = Self { pattern, rest: pattern.char_indices().peekable(), out: String::new(), open: 0 };
        while let Some((at, c)) = all.rest.next() {
            match c {
                '\\' => all.escape(at)?,
                '[' => all.class(at)?,
                '(' => all.group(at)?,
                ')' if all.open == 0 => return Err(format!("unexpected ): `{pattern}`")),
                ')' => all.close(),
                '{' => all.repeat(at)?,
                other => all.out.push(other),
            }
        }
        if all.open > 0 { Err(format!("missing closing ): `{pattern}`")) } else { Ok(all.out) }
    }

    fn after(&self, at: usize) -> &'p str {
        self.pattern.get(at..).unwrap_or_default()
    }

    fn close(&mut self) {
        self.open -= 1;
        self.out.push(')');
    }

    /// What stands within brackets for an escape, where it is a set; whether it is the complement of that.
    fn set(c: char) -> Option<(&'static str, bool)> {
        let set = match c.to_ascii_lowercase() {
            'd' => DIGITS,
            's' => SPACES,
            'w' => WORDS,
            _ => return None,
        };
        Some((set, c.is_ascii_uppercase()))
    }

    fn escape(&mut self, at: usize) -> Result<(), String> {
        let Some((_, c)) = self.rest.next() else { return Err("trailing backslash at end of expression: ``".into()) };
        match (Self::set(c), c) {
            (Some((set, negated)), _) => self.out.push_str(&format!("[{}{set}]", if negated { "^" } else { "" })),
            (None, 'b') => self.out.push_str(r"(?-u:\b)"),
            (None, 'B') => self.out.push_str(r"(?-u:\B)"),
            (None, 'Q') => self.quoted(),
            (None, '<' | '>') => self.out.push(c),
            (None, _) => return self.plain_escape(at, c),
        }
        Ok(())
    }

    /// An escape of one character, or of a class by its Unicode name.
    fn plain_escape(&mut self, at: usize, c: char) -> Result<(), String> {
        let is_known = c.is_ascii_punctuation() || c.is_ascii_digit() || "AzafnrtvxpP".contains(c);
        if !is_known {
            let end = at + 1 + c.len_utf8();
            return Err(format!("invalid escape sequence: `{}`", self.pattern.get(at..end).unwrap_or_default()));
        }
        self.out.push('\\');
        self.out.push(c);
        if "pPx".contains(c) && self.rest.peek().is_some_and(|(_, c)| *c == '{') {
            for (_, c) in self.rest.by_ref() {
                self.out.push(c);
                if c == '}' {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Up to `\E` everything stands for itself.
    fn quoted(&mut self) {
        let start = self.rest.peek().map_or(self.pattern.len(), |(at, _)| *at);
        let text = self.after(start);
        let (text, skipped) = text.split_once(r"\E").map_or((text, 0), |(text, _)| (text, 2));
        self.out.push_str(&regex::escape(text));
        let end = start + text.len() + skipped;
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
    }

    fn group(&mut self, at: usize) -> Result<(), String> {
        let rest = self.after(at);
        let looks = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#"].into_iter().find(|look| rest.starts_with(look));
        if let Some(look) = looks {
            return Err(format!("invalid or unsupported Perl syntax: `{look}`"));
        }
        self.open += 1;
        self.out.push('(');
        Ok(())
    }

    /// `{2,5}`; braces that hold anything else stand for themselves.
    fn repeat(&mut self, at: usize) -> Result<(), String> {
        let inner = self.after(at + 1).split_once('}').map(|(inner, _)| inner);
        let numbers = inner.map(|inner| inner.split_once(',').unwrap_or((inner, inner)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let Some((low, high)) = numbers.filter(|(low, high)| is_number(low) && (high.is_empty() || is_number(high)))
        else {
            self.out.push_str(r"\{");
            return Ok(());
        };
        let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        let highest = if high.is_empty() { number(low) } else { number(high) };
        if highest > MAX_REPEAT || number(low) > highest {
            return Err(format!("invalid repeat count: `{{{}}}`", inner.unwrap_or_default()));
        }
        self.out.push('{');
        Ok(())
    }

    fn class(&mut self, at: usize) -> Result<(), String> {
        let missing = format!("missing closing ]: `{}`", self.after(at));
        self.out.push('[');
        if self.rest.next_if(|(_, c)| *c == '^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let Some((at, c)) = self.rest.next() else { return Err(missing) };
            if c == ']' && !is_first {
                self.out.push(']');
                return Ok(());
            }
            is_first = false;
            if c == '[' && self.named_class(at) {
                continue;
            }
            if !self.class_item(at, c)? {
                continue;
            }
            self.range_end()?;
        }
    }

    /// `[:alpha:]`, which is the same on both sides.
    fn named_class(&mut self, at: usize) -> bool {
        let Some((name, _)) = self.after(at).strip_prefix("[:").and_then(|rest| rest.split_once(":]")) else {
            return false;
        };
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'^') {
            return false;
        }
        self.out.push_str(&format!("[:{name}:]"));
        let end = at + name.len() + 4;
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
        true
    }

    /// One item; whether it is a character that a range may begin with.
    fn class_item(&mut self, at: usize, c: char) -> Result<bool, String> {
        if c != '\\' {
            if "[]&~-^\\".contains(c) {
                self.out.push('\\');
            }
            self.out.push(c);
            return Ok(true);
        }
        let Some((_, c)) = self.rest.next() else { return Err("trailing backslash at end of expression: ``".into()) };
        match (Self::set(c), c) {
            (Some((set, false)), _) => self.out.push_str(set),
            (Some((set, true)), _) => self.out.push_str(&format!("[^{set}]")),
            (None, '<' | '>') => self.out.push(c),
            (None, _) => {
                self.plain_escape(at, c)?;
                self.code();
            }
        }
        Ok(Self::set(c).is_none() && !matches!(c, 'p' | 'P'))
    }

    /// The digits of `\x41`, so that a range may follow.
    fn code(&mut self) {
        if !self.out.ends_with(r"\x") {
            return;
        }
        for _ in 0..2 {
            let digit = self.rest.next_if(|(_, c)| c.is_ascii_hexdigit());
            self.out.extend(digit.map(|(_, digit)| digit));
        }
    }

    /// `-z` behind a character, unless the class ends with the dash.
    fn range_end(&mut self) -> Result<(), String> {
        let Some(&(at, '-')) = self.rest.peek() else { return Ok(()) };
        if self.after(at + 1).starts_with(']') || self.after(at + 1).is_empty() {
            return Ok(());
        }
        self.rest.next();
        self.out.push('-');
        let Some((at, c)) = self.rest.next() else { return Ok(()) };
        self.class_item(at, c).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_do_in_go() {
        for (pattern, good, bad) in [
            (r"^\d+$", "12", "\u{0663}"),
            (r"^[\d-]+$", "1-2", "\u{0663}"),
            (r"^\w$", "_", "\u{e9}"),
            (r"^[^\s]$", "a", " "),
            (r"^[\W]$", "-", "a"),
            (r"^\S{1,1000}$", "abc", "a b"),
            (r"^[a[\]]+$", "a[]", "b"),
            (r"^[]a]$", "]", "b"),
            (r"^[a&&b]+$", "&ab", "c"),
            (r"^[+--]+$", "+,-", "."),
            (r"^[a-]+$", "a-", "b"),
            (r"^[[:alpha:]\x30-\x39]+$", "a0", "-"),
            (r"^\<a\>$", "<a>", "a"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"^a{,2}$", "a{,2}", "aa"),
            (r"^a{2}$", "aa", "a"),
            (r"^\p{Lu}[\p{Lu}-]$", "\u{c9}-", "\u{c9}a"),
            (r"^\x{41}[\x{41}-\x43]$", "AC", "AD"),
            (r"^(([a-z0-9]|[a-z0-9][-a-z0-9]*[a-z0-9])\.)*x/y_\@$", "a-b.x/y_@", "-.x/y_@"),
        ] {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert!(regex.is_match(good), "{pattern} {good}");
            assert!(!regex.is_match(bad), "{pattern} {bad}");
        }
    }

    #[test]
    fn faults_have_the_usual_words() {
        for (pattern, expected) in [
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("x[a", "missing closing ]: `[a`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            ("a{1,1001}", "invalid repeat count: `{1,1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("\\", "trailing backslash at end of expression: ``"),
        ] {
            let error = compile(pattern).expect_err(pattern);
            assert_eq!(error, format!("error parsing regexp: {expected}"));
            assert_eq!(check(pattern), Err(error));
        }
        for pattern in ["*a", "(?:a{1,1000}){1,1000}"] {
            let error = compile(pattern).expect_err(pattern);
            assert_eq!(check(pattern), Err(error));
        }
        assert_eq!(check(r"^\pL{1,100}$"), Ok(()), "larger than what is surely small");
    }
}
