//! Expressions: any source over one object, and some over any object. None costs more than it may.

use api_machinery::json;
use cel::kubernetes::{Minor, PER_CALL_LIMIT, environment};
use cel::{Budget, Environment, NoHints, Program, Type, Value, Variables};
use rand::rngs::StdRng;

use super::{parts, text};
use crate::engine::{Answer, Target};
use crate::mutate::Mutator;

/// The release whose libraries expressions may use.
const RELEASE: Minor = Minor(36);
/// What expressions are about.
const OBJECT: &str = r#"{"name":"a","n":7,"f":1.5,"list":[1,2,{"a":"b"}],"map":{"a":"b","c":null},"text":"1.2.3 ä😀","q":"1Gi","time":"2020-01-01T00:00:00Z","ip":"10.0.0.1/8","url":"https://a.example:80/x?y=z"}"#;
/// Parts of expressions; most of them have a type that the checker lets pass.
const WORDS: &[&str] = &[
    "self.◦",
    "self",
    "self.n",
    "self.f",
    "self.list",
    "self.map",
    "self.text",
    "self.q",
    "x",
    "k",
    "1",
    "0",
    "-1",
    "1u",
    "1.5",
    "'a'",
    "true",
    "null",
    "b'\\xff'",
    "r'\\",
    "'''◦'''",
    "\\u{110000}",
    "0x",
    "1e400",
    "-9223372036854775808",
    "9223372036854775807",
    "(◦)",
    "[◦, ◦]",
    "[◦, ◦].concat(◦)",
    "{'a': ◦}",
    "{◦: ◦, ◦: ◦}",
    "dyn(◦)",
    "◦ + ◦",
    "◦ - ◦",
    "◦ * ◦",
    "◦ / ◦",
    "◦ % ◦",
    "-◦",
    "!◦",
    "◦ == ◦",
    "◦ != ◦",
    "◦ < ◦",
    "◦ <= ◦",
    "◦ && ◦",
    "◦ || ◦",
    "◦ ? ◦ : ◦",
    "◦ in ◦",
    "◦[◦]",
    "◦[0]",
    "◦.a",
    "◦.?a",
    "◦[?◦]",
    "has(self.◦)",
    "size(◦)",
    "int(◦)",
    "uint(◦)",
    "double(◦)",
    "string(◦)",
    "bytes(◦)",
    "bool(◦)",
    "type(◦)",
    "self.list.map(x, ◦)",
    "self.list.all(x, ◦)",
    "self.list.exists(x, ◦)",
    "self.list.exists_one(x, ◦)",
    "self.list.filter(x, ◦)",
    "self.list.map(x, ◦, ◦)",
    "self.map.all(k, v, ◦)",
    "self.map.transformMap(k, v, ◦)",
    "self.list.transformList(i, v, ◦)",
    "self.list.map(x, self.list.map(y, ◦))",
    "cel.bind(x, ◦, ◦)",
    "◦.map(x, ◦)",
    "◦.all(x, ◦)",
    "◦.filter(x, ◦)",
    "lists.range(1000000)",
    "lists.range(◦)",
    "◦.slice(◦, ◦)",
    "◦.flatten()",
    "◦.sort()",
    "◦.sortBy(x, ◦)",
    "◦.distinct()",
    "◦.reverse()",
    "◦.isSorted()",
    "◦.sum()",
    "◦.min()",
    "◦.max()",
    "◦.indexOf(◦)",
    "◦.lastIndexOf(◦)",
    "◦.join(◦)",
    "optional.of(◦)",
    "optional.none()",
    "optional.ofNonZeroValue(◦)",
    "◦.orValue(◦)",
    "◦.or(◦)",
    "◦.hasValue()",
    "◦.optMap(x, ◦)",
    "◦.optFlatMap(x, ◦)",
    "◦.value()",
    "sets.contains(◦, ◦)",
    "sets.equivalent(◦, ◦)",
    "sets.intersects(◦, ◦)",
    "'◦'.format([◦])",
    "'%s %d %.3f %x %b %e %o'.format([◦, ◦])",
    "self.text.matches(◦)",
    "◦.matches('(a*)*b')",
    "'(.{1,1000}){1,1000}'",
    "◦.find(◦)",
    "◦.findAll(◦)",
    "◦.split(◦)",
    "◦.split('', ◦)",
    "self.text.replace(◦, ◦)",
    "◦.replace('', 'xxxxxxxxxx')",
    "◦.substring(◦, ◦)",
    "◦.charAt(◦)",
    "◦.lowerAscii()",
    "◦.upperAscii()",
    "◦.trim()",
    "strings.quote(◦)",
    "◦.startsWith(◦)",
    "◦.endsWith(◦)",
    "◦.contains(◦)",
    "base64.encode(◦)",
    "base64.decode(◦)",
    "quantity(self.q)",
    "quantity(◦)",
    "isQuantity(◦)",
    "◦.isGreaterThan(◦)",
    "◦.compareTo(◦)",
    "◦.add(◦)",
    "◦.sub(◦)",
    "◦.asInteger()",
    "◦.asApproximateFloat()",
    "◦.sign()",
    "duration('1h')",
    "duration(◦)",
    "timestamp(self.time)",
    "timestamp(◦)",
    "◦.getFullYear()",
    "◦.getDayOfYear('Europe/Berlin')",
    "◦.getHours(◦)",
    "◦.getMilliseconds()",
    "ip('10.0.0.1')",
    "ip(◦)",
    "isIP(◦)",
    "ip.isCanonical(◦)",
    "◦.family()",
    "cidr(self.ip)",
    "cidr(◦)",
    "isCIDR('::/0')",
    "◦.containsIP(◦)",
    "◦.containsCIDR(◦)",
    "◦.masked()",
    "◦.prefixLength()",
    "url(self.url)",
    "url(◦)",
    "isURL(◦)",
    "◦.getHost()",
    "◦.getQuery()",
    "◦.getEscapedPath()",
    "semver('1.2.3')",
    "semver(◦, true)",
    "isSemver(◦)",
    "◦.major()",
    "◦.isLessThan(◦)",
    "format.dns1123Label().value().validate(◦)",
    "format.named(◦)",
    "math.greatest(◦, ◦)",
    "math.least([◦])",
    "math.ceil(◦)",
    "math.round(◦)",
    "math.abs(◦)",
    "math.sign(◦)",
    "math.bitAnd(◦, ◦)",
    "math.bitShiftLeft(◦, ◦)",
    "math.sqrt(◦)",
    "math.isNaN(◦)",
    "jsonpatch.escapeKey(◦)",
];
/// What is asked of any object.
const QUESTIONS: &[&str] = &[
    "self == self && (self in [self])",
    "string(self) + self.text",
    "self.list.map(x, x + x).filter(x, x != self.n).exists(x, x > 1) || self.map.all(k, v, k in self.map)",
    "quantity(self.q).add(quantity('1')).isGreaterThan(quantity('1Mi')) && isSemver(self.text)",
    "self.text.split('').join('-').replace('a', 'bb').lowerAscii().substring(1).matches(self.name + '+')",
    "timestamp(self.time) + duration(self.name) > timestamp('2001-01-01T00:00:00Z') && cidr(self.ip).containsIP(ip(self.name))",
    "sets.intersects(self.list, self.list) && lists.range(self.n).size() > int(self.f) && url(self.url).getHost() != ''",
    "self.text == '%s %d'.format([self.name, self.n]) ? dyn(self.?map[?'a'].orValue('x')) : dyn({})",
];

pub(super) const SOURCES: Target = Target {
    name: "cel-sources",
    words: WORDS,
    made: Some(source),
    inputs: 400,
    player: || {
        let (env, object) = (env(), json::parse_value(OBJECT).expect("an object"));
        Box::new(move |input| Answer::of(env.compile(text(input)), |program| answer(&program, &object)))
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
    made: None,
    inputs: 150,
    player: || {
        let env = env();
        let compiled =
            QUESTIONS.iter().map(|source| env.compile(source).unwrap_or_else(|issues| panic!("{source}: {issues}")));
        let programs: Vec<Program> = compiled.collect();
        Box::new(move |input| {
            let [object] = parts(input);
            Answer::of(json::parse_value(object), |object| {
                programs.iter().map(|program| answer(program, &object)).collect::<Vec<_>>().join("\n")
            })
        })
    },
};

fn env() -> Environment {
    environment(RELEASE).with_variable("self", Type::Dyn)
}

/// An expression put together of words.
fn source(rng: &mut StdRng) -> Vec<u8> {
    Mutator { pool: &[], words: WORDS, longest: 0 }.word(rng, 5).into_bytes()
}

/// The value's type, or the error; and whether the expression cost no more than it may.
fn answer(program: &Program, object: &serde_json::Value) -> String {
    let estimate = program.estimate(&NoHints);
    assert!(estimate.min <= estimate.max, "{estimate:?}");
    let done = program.evaluate(&Variables::default().with("self", Value::of_json(object)), Budget::of(PER_CALL_LIMIT));
    match done.result {
        Ok(value) => {
            assert!(done.cost <= PER_CALL_LIMIT, "it cost {}", done.cost);
            format!("{:?}", value.type_of())
        }
        Err(error) => error.to_string(),
    }
}
