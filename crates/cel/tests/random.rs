//! Whatever is asked, the answer is a value or an error: seeded random sources, no panic.

use base::Rng;
use cel::kubernetes::{Minor, environment};
use cel::{Budget, NoHints, Type, Value, Variables};

const ROUNDS: u64 = 3000;
const WORDS: [&str; 48] = [
    "a",
    "b",
    "1",
    "-1",
    "2u",
    "1.5",
    "'x'",
    "b'y'",
    "null",
    "true",
    "false",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    ".",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "==",
    "!=",
    "in",
    "&&",
    "||",
    "!",
    ".all(x, x)",
    ".map(x, x + 1)",
    ".exists(i, v, v == i)",
    "size(",
    "has(a.b)",
    ".?b",
    "[?0]",
    "9223372036854775807",
    "'\u{1F431}'",
    "duration('1h')",
    "timestamp(0)",
    ".matches('[')",
    "ip('::1')",
    ".split('')",
    "//",
];

#[test]
fn random_words_never_panic() {
    let env = environment(Minor(36)).with_variable("a", Type::Dyn).with_variable("b", Type::list(Type::Int));
    let json = serde_json::json!({"b": [1, {"c": null}]});
    let variables = Variables::default().with("a", Value::of_json(&json)).with("b", Value::list(vec![Value::Int(1)]));
    let mut compiled = 0;
    for seed in 0..ROUNDS {
        let rng = Rng::seeded(seed);
        let count = 1 + rng.below(9);
        let source: Vec<&str> = (0..count).map(|_| WORDS[usize::try_from(rng.below(48)).unwrap()]).collect();
        let source = source.join(if seed % 2 == 0 { "" } else { " " });
        for program in [env.compile(&source), env.compile_unchecked(&source)] {
            match program {
                Ok(program) => {
                    compiled += 1;
                    let range = program.estimate(&NoHints);
                    assert!(range.min <= range.max, "{source}");
                    let _ = program.evaluate(&variables, Budget::of(10_000)).result.map(|value| value.to_display());
                }
                Err(issues) => assert!(!issues.to_string().is_empty(), "{source}"),
            }
        }
    }
    assert!(compiled > 100, "{compiled} of them mean something");
}

#[test]
fn what_is_nested_too_deeply_or_too_long_is_refused() {
    let env = environment(Minor(36));
    for source in [
        "(".repeat(10_000),
        "[".repeat(10_000),
        format!("{}1{}", "(".repeat(300), ")".repeat(300)),
        format!("1{}", "+1".repeat(600)),
        format!("{{}}{}", ".a".repeat(600)),
        "!".repeat(50_000),
        "-".repeat(50_000),
        "1?1:".repeat(400) + "1",
        "x".repeat(100_001),
        format!("optional.of(1){}", ".optMap(x, x)".repeat(60)),
        // Few levels of brackets, with many nodes in each.
        format!("{}1{}", "a||a&&a<a+a*[".repeat(249), "]".repeat(249)),
        format!("{}1{}", "a?a||a<a+a*{'a':".repeat(249), "}:1".repeat(249)),
    ] {
        assert!(env.compile(&source).is_err(), "{}", &source[..20]);
    }
    let variables = Variables::default();
    // The deepest that is not refused fits on the stack of any thread.
    for source in [
        format!("{}1{}", "(".repeat(249), ")".repeat(249)),
        format!("{}1{}", "[".repeat(248), "]".repeat(248)),
        format!("{}1{}", "{'a': ".repeat(248), "}".repeat(248)),
        format!("1{}", "+1".repeat(248)),
        format!("size({}1{}) > 0", "[dyn(".repeat(110), ")]".repeat(110)),
        format!("{}true{}", "[1].all(x, ".repeat(80), ")".repeat(80)),
    ] {
        let program = env.compile(&source).unwrap_or_else(|issues| panic!("{issues}"));
        assert!(program.evaluate(&variables, Budget::default()).result.is_ok());
    }
    let long = "'x'.replace('', 'yyyyyyyyyyyyyyyy')".to_owned() + &".replace('', 'yyyyyyyyyyyyyyyy')".repeat(20);
    let program = env.compile(&long).unwrap();
    assert!(program.evaluate(&variables, Budget::default()).result.is_err());
    // Chains of these are balanced.
    assert!(env.compile(&format!("true{}", " && true".repeat(2000))).is_ok());
}
