//! Expressions: any source over one object, and some over any object. None costs more than it may.

use api_machinery::json;
use cel::kubernetes::{Minor, PER_CALL_LIMIT, environment};
use cel::{Budget, Environment, NoHints, Program, Type, Value, Variables};

use super::{parts, text, told};
use crate::engine::Target;

/// The release whose libraries expressions may use.
const RELEASE: Minor = Minor(36);
/// What expressions are about.
const OBJECT: &str = r#"{"name":"a","n":7,"f":1.5,"list":[1,2,{"a":"b"}],"map":{"a":"b","c":null},"text":"1.2.3 ä😀","q":"1Gi","time":"2020-01-01T00:00:00Z","ip":"10.0.0.1/8","url":"https://a.example:80/x?y=z"}"#;
/// What is asked of any object.
const QUESTIONS: &[&str] = &[
    "self == self && (self in [self])",
    "string(self) + self.text",
    "self.list.map(x, x + x).filter(x, x != self.n).exists(x, x > 1) || self.map.all(k, v, has(self.map[k]))",
    "quantity(self.q).add(quantity('1')).isGreaterThan(quantity('1Mi')) && isSemver(self.text)",
    "self.text.split('').join('-').replace('a', 'bb').lowerAscii().substring(1).matches(self.name + '+')",
    "timestamp(self.time) + duration(self.name) > timestamp('2001-01-01T00:00:00Z') && cidr(self.ip).containsIP(ip(self.name))",
    "sets.intersects(self.list, self.list) && lists.range(self.n).size() > int(self.f) && url(self.url).getHost() != ''",
    "base64.encode(base64.decode(self.text)) == '%s %d'.format([self.name, self.n]) ? self.?map[?'a'].orValue('x') : {}",
];

pub(super) const SOURCES: Target = Target {
    name: "cel-sources",
    words: &[
        "self.",
        "self.list",
        ".map(x, ",
        ".all(k, v, ",
        ".exists_one(",
        "has(",
        "size(",
        " ? ",
        " : ",
        " in ",
        "[0]",
        "{'a': ",
        "dyn(",
        "'''",
        "r'\\",
        "b'\\xff'",
        "\\u{110000}",
        "0x",
        "1u",
        "1e400",
        "-9223372036854775808",
        "duration('1h')",
        "timestamp('",
        ".format([",
        "quantity('",
        "cel.bind(",
        "lists.range(1000000)",
        ".matches('(a*)*b')",
        "optional.of(",
        ".?a",
        "[?0]",
        "sets.contains(",
        ".replace('', 'xxxxxxxxxx')",
        "isIP('::",
        "semver('",
    ],
    player: || {
        let (env, object) = (env(), json::parse_value(OBJECT).expect("an object"));
        Box::new(move |input| match env.compile(text(input)) {
            Ok(program) => answer(&program, &object),
            Err(issues) => issues.to_string(),
        })
    },
};

pub(super) const OBJECTS: Target = Target {
    name: "cel-objects",
    words: &[
        "\"list\":[",
        "\"map\":{",
        "\"text\":\"",
        "\"q\":\"1e",
        "\"n\":",
        "null",
        "{}",
        "[]",
        "\"time\":\"",
        "\"ip\":\"::ffff:",
        "\"url\":\"//",
        "\\u0000",
    ],
    player: || {
        let env = env();
        let compiled =
            QUESTIONS.iter().map(|source| env.compile(source).unwrap_or_else(|issues| panic!("{source}: {issues}")));
        let programs: Vec<Program> = compiled.collect();
        Box::new(move |input| {
            let [object] = parts(input);
            told(json::parse_value(object), |object| {
                programs.iter().map(|program| answer(program, &object)).collect::<Vec<_>>().join("\n")
            })
        })
    },
};

fn env() -> Environment {
    environment(RELEASE).with_variable("self", Type::Dyn)
}

fn answer(program: &Program, object: &serde_json::Value) -> String {
    let estimate = program.estimate(&NoHints);
    let done = program.evaluate(&Variables::default().with("self", Value::of_json(object)), Budget::of(PER_CALL_LIMIT));
    let text = told(done.result, |value| format!("{:?}", value.type_of()));
    assert!(estimate.min <= estimate.max);
    text
}
