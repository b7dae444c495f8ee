//! Nodes that are made for macros say and cost what the expansions say and cost.

use base::Rng;

use crate::kubernetes::{Minor, environment};
use crate::{Budget, MacroSet, Program, Type, Value, Variables};

/// What can go another way in a round: decided early, never, by errors before and after what decides.
const TABLE: [&str; 37] = [
    "[1, 2, 3].all(x, x > 0)",
    "[1, 2, 3].all(x, x < 2)",
    "[1, 2, 3].all(x, x < 3)",
    "[].all(x, false)",
    "[0, 1, 2].all(x, 1 / x > 0)",
    "[0, 1, 2].all(x, 1 / x > 1)",
    "[0, 1, 0].all(x, o.nope > x / 0)",
    "[1, 2].all(x, x)",
    "[1, 2].all(x, o.list[x + 7] > 0)",
    "[1, 2].exists(x, o.list[x + 7] > 0)",
    "[1, 2].exists_one(x, o.list[x + 7] > 0)",
    "[1, 2, 3].exists(x, x > 1)",
    "[1, 2, 3].exists(x, x > 3)",
    "[0, 1, 2].exists(x, 1 / x == 1)",
    "[0, 1, 2].exists(x, 1 / x == 2)",
    "[].exists(x, true)",
    "[1, 2, 1].exists_one(x, x == 2)",
    "[1, 2, 1].exists_one(x, x == 1)",
    "[1, 0, 2].exists_one(x, 1 / x == 1)",
    "[0, 1].exists_one(x, o.list[x].nope == 1 / x)",
    "{'a': 1, 'b': 2}.all(k, v, k != 'b' || v == 2)",
    "o.all(k, k.size() < 2)",
    "['a', 'b'].exists(i, v, i == 1 && v == 'b')",
    "1.all(x, true)",
    "[1, 2, 3].map(x, x * 2)",
    "[1, 0, 2].map(x, 1 / x)",
    "[1, 0, 2].map(x, x > 0, 1 / x)",
    "[1, 0, 2].map(x, 1 / x > 0, x)",
    "[3, 0, 0].map(x, 1 / x > 0, o.nope)",
    "[1, 2, 3].filter(x, x > 1)",
    "['a', 'b'].transformList(i, v, i > 0, v)",
    "['a', 'b'].transformMap(i, v, v + v)",
    "['a', 'b'].transformMap(i, v, i / 0 > 0, v)",
    "['a', 'b', 'a'].transformMapEntry(i, v, {v: i})",
    "['a', 'b'].transformMapEntry(i, v, 1 / i > 0, {v: i})",
    "cel.bind(x, 1 / 0, [1].all(y, y == 1 || x == 1))",
    "cel.bind(x, o.list, x.sortBy(y, -y).exists(y, y == x[0]))",
];

/// Pieces of random expressions: `R` stands for a list or map, `T` for a test, `V` for a value.
const RANGES: [&str; 8] =
    ["[1, 0, 2]", "o.list", "o", "R.filter(x, T)", "R.map(x, T, V)", "[T, V]", "{V: 1}", "R.transformMap(i, x, T, V)"];
const TESTS: [&str; 12] = [
    "true",
    "false",
    "x == V",
    "V < V",
    "1 / V > 0",
    "T && T",
    "T || !T",
    "R.all(x, T)",
    "R.exists(x, T)",
    "R.exists_one(x, T)",
    "R.all(i, x, T)",
    "has(o.nope)",
];
const VALUES: [&str; 8] = ["x", "0", "1", "o.list[0]", "x.nope", "R", "cel.bind(x, V, V)", "size(R)"];

fn both(source: &str) -> Vec<[Program; 2]> {
    let env = environment(Minor(36)).with_macros(MacroSet::all());
    let env = env.with_variable("o", Type::Dyn).with_variable("x", Type::Dyn);
    let checked = env.compile(source).and_then(|program| Ok([program, env.compile(source)?.expanded()]));
    let unchecked = env.compile_unchecked(source);
    let unchecked = unchecked.and_then(|program| Ok([program, env.compile_unchecked(source)?.expanded()]));
    checked.into_iter().chain(unchecked).collect()
}

/// The value or error, and the cost, under a limit.
fn run(program: &Program, limit: u64) -> (String, u64) {
    let json = serde_json::json!({"list": [2, 1], "b": 0});
    let variables = Variables::default().with("o", Value::of_json(&json)).with("x", Value::Int(1));
    let done = program.evaluate(&variables, Budget::of(limit));
    (done.result.map_or_else(|error| format!("error: {error}"), |value| format!("{value:?}")), done.cost)
}

/// Compares without a limit and with each that ends the evaluation somewhere; tells how many programs there were.
fn compare(source: &str) -> usize {
    let programs = both(source);
    for [own, expanded] in &programs {
        let whole = run(expanded, u64::MAX);
        assert_eq!(run(own, u64::MAX), whole, "{source}");
        for limit in 0..whole.1.min(60) {
            assert_eq!(run(own, limit), run(expanded, limit), "{source} within {limit}");
        }
    }
    programs.len()
}

#[test]
fn macros_are_what_they_expand_to() {
    for source in TABLE {
        assert!(compare(source) > 0, "{source} does not compile");
    }
}

#[test]
fn random_macros_are_what_they_expand_to() {
    let mut compared = 0;
    for seed in 0..400 {
        let rng = Rng::seeded(seed);
        let pick = |pieces: &[&'static str], deep: bool| {
            // Those in front have nothing within them.
            let count = if deep { pieces.len() } else { pieces.len().min(2) };
            pieces[usize::try_from(rng.below(count as u64)).expect("it is small")]
        };
        let mut source = "T".to_owned();
        for step in 0.. {
            let Some(at) = source.find(['R', 'T', 'V']) else { break };
            let pieces = match &source[at..=at] {
                "R" => &RANGES[..],
                "T" => &TESTS[..],
                _ => &VALUES[..],
            };
            source.replace_range(at..=at, pick(pieces, step < 12));
        }
        compared += compare(&source);
    }
    assert!(compared > 400, "{compared}");
}
