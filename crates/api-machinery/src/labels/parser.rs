//! The text form of label selectors: a lexer and a parser by descent without recursion.

use super::{Operator, Requirement, SelectorError, check_key};
use crate::field_path::Path;

/// The operators between a key and its values, as the error text lists them.
const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Identifier,
    Open,
    Close,
    Comma,
    Not,
    Operator(Operator),
    End,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

const END: Token<'static> = Token { kind: Kind::End, text: "" };

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { tokens: tokenize(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        let next = parser.peek_value();
        match next.kind {
            Kind::Identifier | Kind::Not => {}
            Kind::End => return Ok(requirements),
            _ => return Err(syntax(next, "expected: !, identifier, or 'end of string'")),
        }
        requirements.push(parser.requirement().map_err(SelectorError::Requirement)?);
        let separator = parser.next_value();
        match separator.kind {
            Kind::End => return Ok(requirements),
            Kind::Comma => {}
            _ => return Err(syntax(separator, "expected: ',' or 'end of string'")),
        }
        let after = parser.peek_value();
        if !matches!(after.kind, Kind::Identifier | Kind::Not) {
            return Err(syntax(after, "expected: identifier after ','"));
        }
    }
}

fn syntax(token: Token<'_>, expected: &str) -> SelectorError {
    SelectorError::Syntax(found(token, expected))
}

fn found(token: Token<'_>, expected: &str) -> String {
    format!("found '{}', {expected}", token.text)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn tokenize(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if rest.starts_with("==") || rest.starts_with("!=") => 2,
            _ if is_symbol(first) => 1,
            _ => rest.find(|c| is_symbol(c) || is_space(c)).unwrap_or(rest.len()),
        };
        let (text, after) = rest.split_at(length);
        tokens.push(Token { kind: kind_of(text), text });
        rest = after.trim_start_matches(is_space);
    }
    tokens
}

fn kind_of(text: &str) -> Kind {
    match text {
        "(" => Kind::Open,
        ")" => Kind::Close,
        "," => Kind::Comma,
        "!" => Kind::Not,
        "=" => Kind::Operator(Operator::Equals),
        "==" => Kind::Operator(Operator::DoubleEquals),
        "!=" => Kind::Operator(Operator::NotEquals),
        ">" => Kind::Operator(Operator::GreaterThan),
        "<" => Kind::Operator(Operator::LessThan),
        "in" => Kind::Operator(Operator::In),
        "notin" => Kind::Operator(Operator::NotIn),
        _ => Kind::Identifier,
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(END)
    }

    /// The next token where a key or a value stands: `in` and `notin` are plain words there.
    fn peek_value(&self) -> Token<'a> {
        let token = self.peek();
        match token.kind {
            Kind::Operator(Operator::In | Operator::NotIn) => Token { kind: Kind::Identifier, ..token },
            _ => token,
        }
    }

    fn next_value(&mut self) -> Token<'a> {
        let token = self.peek_value();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next_value();
        let negated = token.kind == Kind::Not;
        if negated {
            token = self.next_value();
        }
        if token.kind != Kind::Identifier {
            return Err(found(token, "expected: identifier"));
        }
        let key = token.text;
        check_key(key, &Path::nil()).map_err(|error| error.to_string())?;
        let alone = matches!(self.peek_value().kind, Kind::End | Kind::Comma);
        let (operator, values) = match (negated, alone) {
            (true, _) => (Operator::DoesNotExist, Vec::new()),
            (false, true) => (Operator::Exists, Vec::new()),
            (false, false) => self.operator_and_values()?,
        };
        Requirement::new(key.to_owned(), operator, values).map_err(|errors| errors.to_string())
    }

    fn operator_and_values(&mut self) -> Result<(Operator, Vec<String>), String> {
        let token = self.peek();
        self.position += 1;
        let Kind::Operator(operator) = token.kind else {
            return Err(found(token, &format!("expected: {BINARY_OPERATORS}")));
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.value_list()?,
            _ => vec![self.single_value()?],
        };
        Ok((operator, values))
    }

    fn single_value(&mut self) -> Result<String, String> {
        if matches!(self.peek_value().kind, Kind::End | Kind::Comma) {
            return Ok(String::new());
        }
        let token = self.next_value();
        match token.kind {
            Kind::Identifier => Ok(token.text.to_owned()),
            _ => Err(found(token, "expected: identifier")),
        }
    }

    /// Values in parentheses; a missing one between commas or parentheses is the empty value.
    fn value_list(&mut self) -> Result<Vec<String>, String> {
        let open = self.next_value();
        if open.kind != Kind::Open {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let first = self.peek_value();
        match first.kind {
            Kind::Close => {
                self.position += 1;
                return Ok(vec![String::new()]);
            }
            Kind::Identifier | Kind::Comma => {}
            _ => return Err(found(first, "expected: ',', ')' or identifier")),
        }
        let mut values = Vec::new();
        let mut after_comma = true;
        loop {
            let token = self.next_value();
            match token.kind {
                Kind::Identifier => {
                    values.push(token.text.to_owned());
                    let next = self.peek_value();
                    if !matches!(next.kind, Kind::Comma | Kind::Close) {
                        return Err(found(next, "expected: ',' or ')'"));
                    }
                    after_comma = false;
                }
                Kind::Comma if after_comma => values.push(String::new()),
                Kind::Comma => after_comma = true,
                Kind::Close => {
                    values.extend(after_comma.then(String::new));
                    return Ok(values);
                }
                _ => return Err(found(token, "expected: ',', or identifier")),
            }
        }
    }
}
