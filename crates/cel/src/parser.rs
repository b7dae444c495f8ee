//! Tokens into a tree, with macros expanded on the way.
//!
//! A descent by precedence. What is nested too deeply, too long or has too many mistakes is refused with upstream's texts.

use crate::ast::{Element, Entry, Expr, ExprId, FieldInit, Kind, Literal, MAX_DEPTH, Name};
use crate::issue::{Issue, Issues};
use crate::lexer::{self, Token, TokenKind};

mod macros;

pub use macros::MacroSet;

/// How deep an expression may be nested in its text.
const MAX_NESTING: u16 = 250;
/// How long an expression may be, in code points.
const MAX_CODE_POINTS: usize = 100_000;

/// How many nodes macros may write twice: chains of such macros would double the tree each time.
const MAX_COPIED_NODES: usize = 10_000;

/// Words that are kept for later.
const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
];

const EXPECTED: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                        BYTES, IDENTIFIER}";

/// A tree with the places of its nodes.
#[derive(Debug, Clone)]
pub(crate) struct Parsed {
    /// The tree.
    pub(crate) expr: Expr,
    /// Byte offsets, by number of the node.
    pub(crate) offsets: Vec<u32>,
    /// What was read.
    pub(crate) source: String,
}

impl Parsed {
    /// The place of a node.
    pub(crate) fn offset(&self, id: ExprId) -> usize {
        self.offsets.get(id as usize).map_or(0, |offset| *offset as usize)
    }
}

/// Reads an expression.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn parse(source: &str, macros: &MacroSet) -> Result<Parsed, Issues> {
    let fail = |issue| Issues::new(source, vec![issue]);
    let length = source.chars().count();
    if length > MAX_CODE_POINTS {
        let message = format!("expression code point size exceeds limit: size: {length}, limit {MAX_CODE_POINTS}");
        return Err(Issues::new("", vec![Issue { offset: 0, message }]));
    }
    let lexer::Tokens { list: tokens, mut skipped } = lexer::tokens(source).map_err(fail)?;
    let mut parser = Parser { source, tokens, at: 0, offsets: vec![0], macros, nesting: 0, above: 0, copied: 0 };
    match parser.whole() {
        Ok(expr) if skipped.is_empty() => Ok(Parsed { expr, offsets: parser.offsets, source: source.to_owned() }),
        outcome => {
            skipped.extend(outcome.err());
            Err(Issues::new(source, skipped))
        }
    }
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    at: usize,
    offsets: Vec<u32>,
    macros: &'s MacroSet,
    nesting: u16,
    /// Nodes that will stand above what is read now. A tree that is too deep is refused on the way down: its text would take
    /// more stack than there is, as there are several nodes in each level of brackets.
    above: u16,
    /// Nodes that macros wrote twice.
    copied: usize,
}

type Parse<T> = Result<T, Issue>;

/// Binary operators by precedence, loosest first, with the functions they call.
const BINARY: [&[(&str, &str)]; 5] = [
    &[("||", "_||_")],
    &[("&&", "_&&_")],
    &[("<", "_<_"), ("<=", "_<=_"), (">=", "_>=_"), (">", "_>_"), ("==", "_==_"), ("!=", "_!=_"), ("in", "@in")],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];
/// Below this level operators are logical, and chains of one of them are balanced.
const FIRST_PLAIN_LEVEL: usize = 2;

impl Parser<'_> {
    fn whole(&mut self) -> Parse<Expr> {
        let expr = self.expr()?;
        if self.kind() == &TokenKind::End {
            return Ok(expr);
        }
        // As in upstream's parser, a token is one too many where what is expected follows it.
        let is_last = self.tokens.get(self.at + 1).is_none_or(|token| token.kind == TokenKind::End);
        Err(self.unexpected(if is_last { "extraneous" } else { "mismatched" }, "<EOF>"))
    }

    fn kind(&self) -> &TokenKind {
        self.tokens.get(self.at).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.kind(), TokenKind::Mark(found) if *found == mark)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(self.source.len(), |token| token.offset)
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len().saturating_sub(1));
    }

    /// Takes the mark if it is next.
    fn take(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        if found {
            self.advance();
        }
        found
    }

    fn text(&self) -> &str {
        self.tokens.get(self.at).and_then(|token| self.source.get(token.offset..token.end)).unwrap_or_default()
    }

    fn expect(&mut self, mark: &str) -> Parse<()> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected("mismatched", &format!("'{mark}'"))) }
    }

    fn unexpected(&self, how: &str, expected: &str) -> Issue {
        let found = if self.kind() == &TokenKind::End { "<EOF>" } else { self.text() };
        let message = format!("Syntax error: {how} input '{found}' expecting {expected}");
        Issue { offset: self.offset(), message }
    }

    /// A new number for a node at an offset.
    fn id(&mut self, offset: usize) -> ExprId {
        self.offsets.push(u32::try_from(offset).unwrap_or(u32::MAX));
        ExprId::try_from(self.offsets.len() - 1).unwrap_or(ExprId::MAX)
    }

    fn node(&mut self, offset: usize, kind: Kind) -> Parse<Expr> {
        let expr = Expr::new(self.id(offset), kind);
        if expr.depth > MAX_DEPTH { Err(too_deep(offset)) } else { Ok(expr) }
    }

    /// A copy of a part of the tree.
    fn copy(&mut self, expr: &Expr) -> Parse<Expr> {
        expr.any(&mut |_| {
            self.copied += 1;
            false
        });
        if self.copied > MAX_COPIED_NODES { Err(too_deep(self.offset())) } else { Ok(expr.clone()) }
    }

    fn call(&mut self, offset: usize, function: &str, args: Vec<Expr>) -> Parse<Expr> {
        self.node(offset, Kind::Call { function: function.into(), target: None, args })
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING || self.above >= MAX_DEPTH {
            return Err(too_deep(self.offset()));
        }
        let expr = self.conditional();
        self.nesting -= 1;
        expr
    }

    fn conditional(&mut self) -> Parse<Expr> {
        let condition = self.binary(0)?;
        let offset = self.offset();
        if !self.take("?") {
            return Ok(condition);
        }
        self.above += 1;
        let then = self.binary(0)?;
        self.expect(":")?;
        let otherwise = self.expr()?;
        self.above -= 1;
        self.call(offset, "_?_:_", vec![condition, then, otherwise])
    }

    /// The operator that is next, and its level.
    fn operator(&self) -> Option<(usize, &'static str)> {
        let TokenKind::Mark(found) = self.kind() else { return None };
        let mut levels = BINARY.iter().enumerate();
        levels.find_map(|(level, row)| row.iter().find(|(mark, _)| mark == found).map(|(_, name)| (level, *name)))
    }

    /// Operands joined by operators of a level or one that binds tighter. It calls itself no more than once for each
    /// level, which keeps deep nesting cheap.
    fn binary(&mut self, lowest: usize) -> Parse<Expr> {
        let mut left = self.unary()?;
        while let Some((level, function)) = self.operator().filter(|(level, _)| *level >= lowest) {
            if level < FIRST_PLAIN_LEVEL {
                left = self.logical(left, level, function)?;
                continue;
            }
            let offset = self.offset();
            self.advance();
            self.above += 1;
            let right = self.binary(level + 1)?;
            self.above -= 1;
            left = self.call(offset, function, vec![left, right])?;
        }
        Ok(left)
    }

    /// A chain of one logical operator, as a balanced tree: long chains stay shallow.
    fn logical(&mut self, first: Expr, level: usize, function: &str) -> Parse<Expr> {
        let mut parts = vec![first];
        let mut offsets = Vec::new();
        self.above += 1;
        while self.operator().is_some_and(|(found, _)| found == level) {
            offsets.push(self.offset());
            self.advance();
            parts.push(self.binary(level + 1)?);
        }
        self.above -= 1;
        self.balanced(function, &mut parts.into_iter(), &offsets)
    }

    fn balanced(&mut self, function: &str, parts: &mut std::vec::IntoIter<Expr>, offsets: &[usize]) -> Parse<Expr> {
        let middle = offsets.len() / 2;
        let (Some((left, right)), Some(&offset)) = (offsets.split_at_checked(middle), offsets.get(middle)) else {
            return parts.next().ok_or_else(|| too_deep(0));
        };
        let left = self.balanced(function, parts, left)?;
        let right = self.balanced(function, parts, right.get(1..).unwrap_or_default())?;
        self.call(offset, function, vec![left, right])
    }

    /// Signs: an even number of them says nothing, a minus right before a number belongs to it.
    fn unary(&mut self) -> Parse<Expr> {
        for (mark, function) in [("!", "!_"), ("-", "-_")] {
            let offset = self.offset();
            let mut count = 0_usize;
            while self.is(mark) {
                if mark == "-" && self.before_number() {
                    break;
                }
                count += 1;
                self.advance();
            }
            if count > 0 {
                let operand = self.unary_operand()?;
                return if count.is_multiple_of(2) { Ok(operand) } else { self.call(offset, function, vec![operand]) };
            }
        }
        self.member()
    }

    fn unary_operand(&mut self) -> Parse<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(too_deep(self.offset()));
        }
        let operand = self.unary();
        self.nesting -= 1;
        operand
    }

    fn before_number(&self) -> bool {
        let next = self.tokens.get(self.at + 1).map(|token| &token.kind);
        matches!(next, Some(TokenKind::Literal(Literal::Int(_) | Literal::Double(_))))
    }

    fn member(&mut self) -> Parse<Expr> {
        let mut expr = self.primary()?;
        loop {
            let offset = self.offset();
            if self.take(".") {
                expr = self.selection(expr, offset)?;
            } else if self.take("[") {
                let function = if self.take("?") { "_[?_]" } else { "_[_]" };
                let index = self.expr()?;
                self.expect("]")?;
                expr = self.call(offset, function, vec![expr, index])?;
            } else if self.is("{")
                && let Some(name) = expr.as_qualified_name()
            {
                expr = self.message(name.into())?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn selection(&mut self, operand: Expr, offset: usize) -> Parse<Expr> {
        if self.take("?") {
            let (at, field) = (self.offset(), self.field_name()?);
            let field = self.node(at, Kind::Literal(Literal::String(field)))?;
            return self.call(offset, "_?._", vec![operand, field]);
        }
        let escaped = self.kind() == &TokenKind::Escaped;
        let field = self.field_name()?;
        let open = self.offset();
        if escaped || !self.is("(") {
            return self.node(offset, Kind::Select { operand: Box::new(operand), field, test_only: false });
        }
        self.advance();
        let args = self.arguments()?;
        self.call_or_macro(open, &field, Some(operand), args)
    }

    /// A name after a dot; reserved words are allowed there.
    fn field_name(&mut self) -> Parse<Name> {
        let name: Name = match self.kind() {
            TokenKind::Ident => self.text().into(),
            TokenKind::Escaped => self.text().trim_matches('`').into(),
            // More than one rule may go on after a dot, of which upstream's parser then names none.
            _ => {
                let message = format!("Syntax error: no viable alternative at input '.{}'", self.text());
                return Err(Issue { offset: self.offset(), message });
            }
        };
        self.advance();
        Ok(name)
    }

    fn primary(&mut self) -> Parse<Expr> {
        let offset = self.offset();
        if let TokenKind::Literal(literal) = self.kind() {
            let literal = literal.clone();
            self.advance();
            return self.node(offset, Kind::Literal(literal));
        }
        if self.take("-") {
            return self.negative(offset);
        }
        if self.take("(") {
            let expr = self.expr()?;
            self.expect(")")?;
            return Ok(expr);
        }
        if self.is("[") {
            return self.list();
        }
        if self.is("{") {
            return self.map();
        }
        let absolute = self.take(".");
        if self.kind() != &TokenKind::Ident {
            let expected = if absolute { "IDENTIFIER" } else { EXPECTED };
            return Err(self.unexpected("mismatched", expected));
        }
        self.identifier(offset, absolute)
    }

    fn negative(&mut self, offset: usize) -> Parse<Expr> {
        let literal = match self.kind() {
            TokenKind::Literal(Literal::Int(value)) => Literal::Int(value.wrapping_neg()),
            TokenKind::Literal(Literal::Double(value)) => Literal::Double(-value),
            _ => return Err(self.unexpected("mismatched", EXPECTED)),
        };
        self.advance();
        self.node(offset, Kind::Literal(literal))
    }

    fn identifier(&mut self, offset: usize, absolute: bool) -> Parse<Expr> {
        let word = self.text();
        if RESERVED.contains(&word) {
            return Err(Issue { offset, message: format!("reserved identifier: {word}") });
        }
        let name: Name = if absolute { format!(".{word}").into() } else { word.into() };
        self.advance();
        let open = self.offset();
        if self.take("(") {
            let args = self.arguments()?;
            return self.call_or_macro(open, &name, None, args);
        }
        self.node(offset, Kind::Ident(name))
    }

    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(")") {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.take(")") {
                return Ok(args);
            }
            self.expect(",")?;
        }
    }

    fn call_or_macro(&mut self, offset: usize, name: &Name, target: Option<Expr>, args: Vec<Expr>) -> Parse<Expr> {
        match self.macros.expand(self, offset, name, target, args)? {
            macros::Expanded::Macro(expr) => Ok(expr),
            macros::Expanded::Plain(target, args) => {
                self.node(offset, Kind::Call { function: Name::clone(name), target: target.map(Box::new), args })
            }
        }
    }

    /// What comes behind an entry: a comma, also at the end, or the closing mark.
    fn divided(&mut self, close: &str) -> Parse<()> {
        if self.take(",") || self.is(close) {
            return Ok(());
        }
        Err(self.unexpected("mismatched", &format!("{{'{close}', ','}}")))
    }

    fn list(&mut self) -> Parse<Expr> {
        let offset = self.offset();
        self.advance();
        self.above += 1;
        let mut elements = Vec::new();
        while !self.take("]") {
            let optional = self.take("?");
            elements.push(Element { value: self.expr()?, optional });
            self.divided("]")?;
        }
        self.above -= 1;
        self.node(offset, Kind::List { elements })
    }

    fn map(&mut self) -> Parse<Expr> {
        let offset = self.offset();
        self.advance();
        self.above += 1;
        let mut entries = Vec::new();
        while !self.take("}") {
            let optional = self.take("?");
            let key = self.expr()?;
            let colon = self.offset();
            self.expect(":")?;
            let value = self.expr()?;
            entries.push(Entry { id: self.id(colon), key, value, optional });
            self.divided("}")?;
        }
        self.above -= 1;
        self.node(offset, Kind::Map { entries })
    }

    fn message(&mut self, name: Name) -> Parse<Expr> {
        let offset = self.offset();
        self.advance();
        self.above += 1;
        let mut fields = Vec::new();
        while !self.take("}") {
            let optional = self.take("?");
            let name = self.field_name()?;
            let colon = self.offset();
            self.expect(":")?;
            let value = self.expr()?;
            fields.push(FieldInit { id: self.id(colon), name, value, optional });
            self.divided("}")?;
        }
        self.above -= 1;
        self.node(offset, Kind::Struct { name, fields })
    }
}

fn too_deep(offset: usize) -> Issue {
    Issue { offset, message: format!("expression recursion limit exceeded: {MAX_NESTING}") }
}
