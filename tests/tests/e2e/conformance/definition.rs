//! The suite's definition, where it is at hand: which items there are, and how many of them are shown.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::Outcome;

/// A list of items with their names and what they need.
const FILE: &str = "conformance/conformance.json";

/// Says how every check went; gives the number of those that failed.
#[expect(clippy::print_stdout, reason = "the result of a test program")]
pub(crate) fn report(outcomes: &[Outcome]) -> usize {
    for outcome in outcomes {
        let held = if outcome.held { "ok" } else { "FAILED" };
        println!("  check {} ... {held} ({:.1} s)", outcome.name, outcome.took.as_secs_f64());
    }
    let shown: BTreeSet<&String> = outcomes.iter().flat_map(|outcome| &outcome.items).collect();
    let failed: BTreeSet<&String> = outcomes.iter().filter(|outcome| !outcome.held).flat_map(|o| &o.items).collect();
    match names() {
        Some(names) => {
            let unknown: Vec<_> = shown.iter().filter(|item| !names.contains(**item)).collect();
            assert!(unknown.is_empty(), "these are no items of the suite: {unknown:#?}");
            println!("  {} of {} items checked, {} of these failed", shown.len(), names.len(), failed.len());
            if std::env::var_os("COXSWAIN_E2E_MISSING").is_some() {
                names.iter().filter(|name| !shown.contains(name)).for_each(|name| println!("  not checked: {name}"));
            }
        }
        None => println!("  {} items checked, {} of these failed ({FILE} is absent)", shown.len(), failed.len()),
    }
    failed.iter().for_each(|item| println!("  failed: {item}"));
    outcomes.iter().filter(|outcome| !outcome.held).count()
}

/// The names of all items that need containers.
fn names() -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(test_facts::outside(FILE)?).expect("the definition can be read");
    let items: Vec<Value> = serde_json::from_str(&text).expect("the definition is a list");
    let needs_containers = |item: &&Value| item["level"] == "containers";
    Some(items.iter().filter(needs_containers).filter_map(|item| item["codename"].as_str()).map(plain).collect())
}

/// A name without tags in brackets, and single blanks.
fn plain(codename: &str) -> String {
    let mut depth = 0_u32;
    let mut text = String::new();
    for c in codename.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
