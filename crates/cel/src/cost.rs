//! What calls cost: one rule for each overload, from which both the count at run time and the estimate follow.
//!
//! A unit is about the time of one simple operation. Figures are upstream's (cel-go's tracker and Kubernetes' own).

use crate::estimate::{CallEstimate, Node, Range};
use crate::value::{List, Value};

/// Cost of reading a variable or field.
pub(crate) const SELECT: u64 = 1;
/// Cost of a list literal.
pub(crate) const LIST: u64 = 10;
/// Cost of a map literal.
pub(crate) const MAP: u64 = 30;
/// Cost of a struct literal.
pub(crate) const STRUCT: u64 = 40;
/// Cost of adding a value to what a macro gathers: it reads the accumulator and joins it with a literal of one element.
pub(crate) const APPEND: u64 = SELECT + LIST + 1;
/// Cost of adding entries to what a macro gathers.
pub(crate) const INSERT: u64 = SELECT + 1;
/// Cost for each character that is looked at.
const PER_CHARACTER: f64 = 0.1;
/// Cost for each character of a pattern.
const PER_PATTERN_CHARACTER: f64 = 0.25;

/// The rule of an overload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// So much, whatever the arguments are.
    Fixed(u64),
    /// The argument at this place is read so many times; the result is as long as that argument.
    Reads(usize, u32),
    /// As `Reads`, with a result of any size below the argument's.
    Splits(usize, u32),
    /// `startsWith`: upstream counts the receiver and estimates by the argument.
    Prefix,
    /// Equality and order.
    Compares,
    /// Strings or bytes are joined.
    Concatenates,
    /// Lists are joined.
    Chains,
    /// A text is looked for in another.
    Searches,
    /// A pattern is looked for in a text.
    Matches,
    /// `find`: as `Matches`, with a result.
    Finds,
    /// An element is looked for in a list.
    Scans,
    /// Every element of a list is looked at.
    Traverses,
    /// `replace`.
    Replaces,
    /// `join`.
    Joins,
    /// Every element of a list is compared with every one of another.
    Pairs,
    /// An address is compared with a network; so much more, and a text may have to be read.
    Contains { network: bool, text: bool },
    /// A named format validates a text.
    Validates,
    /// A selector is parsed.
    Parses,
    /// Strings become bytes: the result may be so many times as long.
    Encodes(u64),
    /// Bytes become a string.
    Decodes,
}

fn scaled(size: u64, factor: f64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "costs are rounded up anyway")]
    let cost = size as f64 * factor;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
    let down = cost as u64;
    // As `ceil` rounds, which is a call of a library.
    #[expect(clippy::cast_precision_loss, reason = "what is too large to be exact has no fraction")]
    let up = u64::from((down as f64) < cost);
    down.saturating_add(up)
}

/// What it costs to compare two values.
pub(crate) fn comparison(left: &Value<'_>, right: &Value<'_>) -> u64 {
    characters(left.size().min(right.size()))
}

/// Up to this size a tenth of it as doubles have it, rounded up, is what whole numbers make of it.
const EXACT: u64 = 1 << 32;

pub(crate) fn characters(size: u64) -> u64 {
    if size < EXACT { size.div_ceil(10) } else { scaled(size, PER_CHARACTER) }
}

impl Cost {
    /// Whether upstream applies the rule only where the checker could tell the overload.
    pub(crate) fn needs_overload(self) -> bool {
        matches!(
            self,
            Self::Prefix
                | Self::Compares
                | Self::Concatenates
                | Self::Searches
                | Self::Matches
                | Self::Scans
                | Self::Encodes(_)
                | Self::Decodes
        )
    }

    /// What a call cost.
    pub(crate) fn count(self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, Value::size);
        match self {
            Self::Fixed(cost) => cost,
            Self::Reads(arg, times) | Self::Splits(arg, times) => scaled(size(arg), PER_CHARACTER * f64::from(times)),
            Self::Prefix | Self::Encodes(_) | Self::Decodes => characters(size(0)),
            Self::Compares => characters(size(0).min(size(1))),
            Self::Concatenates => characters(size(0).saturating_add(size(1))),
            Self::Chains => 1,
            Self::Searches => characters(size(0)).saturating_mul(characters(size(1))),
            Self::Matches | Self::Finds => {
                characters(size(0) + 1).saturating_mul(scaled(size(1), PER_PATTERN_CHARACTER))
            }
            Self::Scans => size(1),
            Self::Traverses => args.first().map_or(0, traversal),
            Self::Replaces => scaled(size(0), 2.0 * PER_CHARACTER),
            Self::Joins => scaled(result.map_or(0, Value::size), 2.0 * PER_CHARACTER),
            Self::Pairs => size(0).saturating_mul(size(1)).saturating_add(1),
            Self::Contains { network, text } => {
                let more = if network { characters(size(0)) + 1 } else { 0 };
                characters(size(0) * 2) + more + if text { characters(size(1)) } else { 0 }
            }
            Self::Validates => {
                let pattern = args.first().map_or(1, Value::size);
                characters(size(1) + 1).saturating_mul(scaled(pattern, PER_PATTERN_CHARACTER))
            }
            Self::Parses => selector(size(1)),
        }
    }

    /// What a call may cost, and how large its result may be.
    pub(crate) fn estimate(self, target: Option<&Node>, args: &[Node]) -> CallEstimate {
        // A receiver is the first of the arguments here, as it is when costs are counted.
        let node = |index: usize| target.into_iter().chain(args).nth(index);
        let size = |index: usize| node(index).map_or(Range::UNKNOWN, |node| node.size);
        let of = |cost: Range| CallEstimate { cost, result: None };
        match self {
            Self::Fixed(cost) => of(Range::exactly(cost)),
            Self::Reads(arg, times) => CallEstimate {
                cost: size(arg).scaled(PER_CHARACTER * f64::from(times)),
                result: target.map(|_| size(arg)),
            },
            Self::Splits(arg, times) => CallEstimate {
                cost: size(arg).scaled(PER_CHARACTER * f64::from(times)),
                result: Some(Range::new(0, size(arg).max)),
            },
            Self::Encodes(times) => CallEstimate {
                cost: size(0).scaled(PER_CHARACTER),
                result: Some(Range::new(size(0).min, size(0).max.saturating_mul(times))),
            },
            Self::Decodes => CallEstimate {
                cost: size(0).scaled(PER_CHARACTER),
                result: Some(Range::new(size(0).min / 4, size(0).max)),
            },
            Self::Prefix => of(size(1).scaled(PER_CHARACTER)),
            Self::Compares => {
                let most = size(0).max.min(size(1).max);
                of(Range::new(u64::from(most > 0), most).scaled(PER_CHARACTER))
            }
            Self::Concatenates | Self::Chains => {
                let result = size(0).plus(size(1));
                let cost = if self == Self::Chains { Range::exactly(1) } else { result.scaled(PER_CHARACTER) };
                CallEstimate { cost, result: Some(result) }
            }
            Self::Searches => of(size(0).scaled(PER_CHARACTER).times(size(1).scaled(PER_CHARACTER))),
            Self::Matches => of(pattern_cost(size(0), size(1))),
            Self::Finds => {
                CallEstimate { cost: pattern_cost(size(0), size(1)), result: Some(Range::new(0, size(0).max)) }
            }
            Self::Scans => of(size(1)),
            Self::Traverses => of(traversal_estimate(node(0))),
            Self::Replaces => CallEstimate {
                cost: size(0).scaled(2.0 * PER_CHARACTER),
                result: Some(replaced(size(0), size(1), size(2))),
            },
            Self::Joins => {
                let result = joined(node(0), (!args.is_empty()).then(|| size(1)));
                CallEstimate { cost: result.scaled(PER_CHARACTER), result: Some(result) }
            }
            Self::Pairs => of(size(0).times(size(1)).plus(Range::exactly(1))),
            Self::Contains { network, text } => of(contains(network, text.then(|| size(1)))),
            Self::Validates => {
                let pattern = node(0).map_or(Range::UNKNOWN, |_| Range::exactly(MAX_FORMAT_PATTERN));
                of(pattern_cost(size(1), pattern))
            }
            Self::Parses => of(Range::new(selector(size(1).min), selector(size(1).max))),
        }
    }
}

/// What upstream takes a named format's pattern to be at most, where the format is not known.
const MAX_FORMAT_PATTERN: u64 = 128;
/// The sizes of an address in bytes.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// Parsing a selector: a base, a read, and one requirement for every other character.
fn selector(size: u64) -> u64 {
    10_u64.saturating_add(characters(size)).saturating_add(scaled(size, 0.5 * 50.0))
}

fn pattern_cost(text: Range, pattern: Range) -> Range {
    text.plus(Range::exactly(1)).scaled(PER_CHARACTER).times(pattern.scaled(PER_PATTERN_CHARACTER))
}

/// One for each element, and what strings in it have to be read; a string itself is read.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::List(list) => list_traversal(list),
        Value::String(_) | Value::Bytes(_) => characters(value.size()),
        _ => 1,
    }
}

fn list_traversal(list: &List<'_>) -> u64 {
    // Elements are of one type mostly; upstream looks at each.
    list.iter().fold(0, |sum: u64, item| sum.saturating_add(traversal(&item)))
}

fn traversal_estimate(node: Option<&Node>) -> Range {
    let Some(node) = node else { return Range::UNKNOWN };
    match &node.item {
        Some(item) => {
            let read = if item.is_text { item.size.scaled(PER_CHARACTER) } else { Range::exactly(0) };
            node.size.times(read.plus(Range::exactly(1)))
        }
        None => node.size.scaled(PER_CHARACTER),
    }
}

fn contains(network: bool, text: Option<Range>) -> Range {
    let mut cost = ADDRESS.plus(ADDRESS).scaled(PER_CHARACTER);
    if network {
        cost = cost.plus(ADDRESS.scaled(PER_CHARACTER)).plus(Range::exactly(1));
    }
    text.map_or(cost, |size| cost.plus(size.scaled(PER_CHARACTER)))
}

fn joined(list: Option<&Node>, separator: Option<Range>) -> Range {
    let Some(list) = list else { return Range::UNKNOWN };
    let items = list.item.as_ref().map_or(Range::exactly(0), |item| list.size.times(item.size));
    let gaps = Range::new(list.size.min.saturating_sub(1), list.size.max.saturating_sub(1));
    separator.map_or(items, |separator| items.plus(separator.times(gaps)))
}

/// The size of a text in which each `from` became `to`.
fn replaced(text: Range, from: Range, to: Range) -> Range {
    let bound = |text: u64, from: u64, to: u64, keeps: bool| {
        let (count, kept) = if from == 0 {
            (text.saturating_add(1), text)
        } else if keeps {
            (0, text)
        } else {
            (text.div_ceil(from), 0)
        };
        count.saturating_mul(to).saturating_add(kept)
    };
    Range::new(
        bound(text.min, from.max, to.min, from.max <= to.min),
        bound(text.max, from.min, to.max, to.max <= from.min),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_cost_what_doubles_make_of_them() {
        let around = |power: u32| (1_u64 << power).saturating_sub(300)..(1 << power) + 300;
        for size in (0..100_000).chain((17..34).flat_map(around)).chain([u64::MAX]) {
            assert_eq!(characters(size), scaled(size, PER_CHARACTER), "{size}");
        }
    }
}
