//! Text into tokens.

use crate::ast::Literal;
use crate::issue::{Issue, MAX_ISSUES};

mod text;

/// A token at a byte offset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) offset: usize,
    pub(crate) end: usize,
    pub(crate) kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Ident,
    /// A name in backticks, which may have more characters.
    Escaped,
    Literal(Literal),
    /// Operators, brackets and words that are operators.
    Mark(&'static str),
    End,
}

/// Longest first.
const MARKS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}", "in",
];

/// What a text is made of.
pub(crate) struct Tokens {
    pub(crate) list: Vec<Token>,
    /// What begins no token. It is passed over, so that more mistakes are found.
    pub(crate) skipped: Vec<Issue>,
}

pub(crate) fn tokens(source: &str) -> Result<Tokens, Issue> {
    let mut lexer = Lexer { source, at: 0 };
    let mut out = Tokens { list: Vec::new(), skipped: Vec::new() };
    loop {
        lexer.skip_blank();
        if let Some(issue) = lexer.skip_unknown() {
            if out.skipped.len() < MAX_ISSUES {
                out.skipped.push(issue);
            }
            continue;
        }
        let token = lexer.next()?;
        let last = token.kind == TokenKind::End;
        out.list.push(token);
        if last {
            return Ok(out);
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.source.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        while self.at < self.source.len() && test(self.peek(0)) {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) {
        loop {
            self.skip_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c));
            if !self.rest().starts_with("//") {
                return;
            }
            self.skip_while(|b| b != b'\n');
        }
    }

    fn next(&mut self) -> Result<Token, Issue> {
        let offset = self.at;
        let first = self.peek(0);
        let kind = if offset >= self.source.len() {
            TokenKind::End
        } else if let Some(start) = text::start(self.rest()) {
            let (literal, length) = text::read(self.rest(), start).map_err(|message| Issue { offset, message })?;
            self.at += length;
            TokenKind::Literal(literal)
        } else if first.is_ascii_digit() || (first == b'.' && self.peek(1).is_ascii_digit()) {
            TokenKind::Literal(self.number()?)
        } else if first.is_ascii_alphabetic() || first == b'_' {
            self.word()
        } else if first == b'`' {
            self.escaped()?
        } else if let Some(mark) = self.find_mark() {
            self.at += mark.len();
            TokenKind::Mark(mark)
        } else {
            return Err(self.unrecognised(offset));
        };
        Ok(Token { offset, end: self.at, kind })
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'_');
        match self.source.get(start..self.at).unwrap_or_default() {
            "true" => TokenKind::Literal(Literal::Bool(true)),
            "false" => TokenKind::Literal(Literal::Bool(false)),
            "null" => TokenKind::Literal(Literal::Null),
            "in" => TokenKind::Mark("in"),
            _ => TokenKind::Ident,
        }
    }

    fn escaped(&mut self) -> Result<TokenKind, Issue> {
        let start = self.at;
        self.at += 1;
        self.skip_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' '));
        if self.peek(0) != b'`' || self.at == start + 1 {
            return Err(self.unrecognised(start));
        }
        self.at += 1;
        Ok(TokenKind::Escaped)
    }

    /// Passes over what begins no token.
    fn skip_unknown(&mut self) -> Option<Issue> {
        let (start, first) = (self.at, self.rest().chars().next()?);
        if first.is_ascii_alphanumeric() || "_`'\"".contains(first) || self.find_mark().is_some() {
            return None;
        }
        // Half an operator is told, and passed over, with what stands where the other half should.
        let count = if "=&|".contains(first) { 2 } else { 1 };
        self.at += self.rest().chars().take(count).map(char::len_utf8).sum::<usize>();
        Some(self.unrecognised(start))
    }

    fn find_mark(&self) -> Option<&'static str> {
        MARKS.into_iter().find(|mark| self.rest().starts_with(mark))
    }

    fn unrecognised(&self, start: usize) -> Issue {
        let text = self.source.get(start..self.at).unwrap_or_default();
        Issue { offset: start, message: format!("Syntax error: token recognition error at: '{text}'") }
    }

    fn number(&mut self) -> Result<Literal, Issue> {
        let start = self.at;
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            self.skip_while(|b| b.is_ascii_hexdigit());
            return self.integer(start, 16);
        }
        self.skip_while(|b| b.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                float = true;
                self.at += 1 + sign;
                self.skip_while(|b| b.is_ascii_digit());
            }
        }
        if !float {
            return self.integer(start, 10);
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Literal::Double).ok_or_else(|| Issue { offset: start, message: "invalid double literal".to_owned() })
    }

    /// The value of an integer with `i64::MIN` allowed: the parser joins it with the minus before it.
    fn integer(&mut self, start: usize, radix: u32) -> Result<Literal, Issue> {
        let text = self.source.get(start..self.at).unwrap_or_default();
        let digits = if radix == 16 { text.get(2..).unwrap_or_default() } else { text };
        let value = u64::from_str_radix(digits, radix).ok();
        if matches!(self.peek(0), b'u' | b'U') {
            self.at += 1;
            return value
                .map(Literal::Uint)
                .ok_or_else(|| Issue { offset: start, message: "invalid uint literal".to_owned() });
        }
        let invalid = || Issue { offset: start, message: "invalid int literal".to_owned() };
        let value = value.ok_or_else(invalid)?;
        match i64::try_from(value) {
            Ok(value) => Ok(Literal::Int(value)),
            // Only right behind a minus.
            Err(_) if value == 1 << 63 && self.source.get(..start).is_some_and(|s| s.ends_with('-')) => {
                Ok(Literal::Int(i64::MIN))
            }
            Err(_) => Err(invalid()),
        }
    }
}
