//! Constants that a function will read: patterns, durations and timestamps, looked at when compiled.

use crate::ast::{Expr, Kind, Literal};
use crate::issue::Issue;
use crate::time::{self, Timestamp};

use super::Checked;

pub(super) fn check(checked: &Checked, issues: &mut Vec<Issue>) {
    checked.parsed.expr.any(&mut |expr| {
        if let Some((at, message)) = problem(expr) {
            issues.push(Issue { offset: checked.parsed.offset(at.id), message });
        }
        false
    });
}

fn problem(expr: &Expr) -> Option<(&Expr, String)> {
    let Kind::Call { function, args, .. } = &expr.kind else { return None };
    let arg = args.last()?;
    let Kind::Literal(Literal::String(text)) = &arg.kind else { return None };
    let invalid = match &**function {
        "duration" => time::parse_duration(text).is_none(),
        "timestamp" => Timestamp::parse(text).is_none(),
        "matches" => crate::pattern::compile(text).is_err(),
        _ => false,
    };
    invalid.then(|| (arg, format!("invalid {function} argument")))
}
