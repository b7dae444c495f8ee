//! Schemas of custom resources, with objects: an input is a schema, a line `---`, an object, and perhaps another, which it
//! was before.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::json;
use schema::Structural;
use schema::structural::{self, structure};
use schema_rules::{Check, KnownExpressions, RUNTIME_BUDGET, RuleTree, Subject};
use serde_json::Value;

use super::parts;
use crate::engine::{Answer, Target};
use crate::made_schemas;

const WORDS: &[&str] = &[
    "\"type\":\"object\"",
    "\"properties\":{",
    "\"items\":{",
    "\"additionalProperties\":",
    "\"anyOf\":[{",
    "\"not\":{",
    "\"pattern\":\"(a+)+$\"",
    "\"format\":\"date-time\"",
    "\"default\":",
    "\"x-kubernetes-preserve-unknown-fields\":true",
    "\"x-kubernetes-int-or-string\":true",
    "\"x-kubernetes-list-type\":\"map\"",
    "\"x-kubernetes-list-map-keys\":[\"a\"]",
    "\"x-kubernetes-embedded-resource\":true",
    "\"nullable\":true",
    "\"x-kubernetes-validations\":[{\"rule\":\"",
    "\"enum\":[",
    "\"maxLength\":",
    "\"maxItems\":",
    "self.all(x, x",
    "oldSelf",
    "\n---\n",
    "},{",
    "null",
    "\"messageExpression\":\"",
    "self.matches('(.*)*x')",
    "self.all(x, x.size() > 1)",
    "self.map(x, self.map(y, x == y))",
    "self.a.b > 1 && ◦",
    "has(self.a) ? ◦ : true",
    "oldSelf == self",
    "self.isSorted()",
    "quantity(self).isGreaterThan(quantity('1'))",
    "size(self) < 10",
    "\"minimum\":",
    "\"multipleOf\":",
    "\"uniqueItems\":true",
    "[[[[",
];

pub(super) const SCHEMAS: Target = Target {
    name: "schemas",
    words: WORDS,
    made: Some(made_schemas::with_objects),
    inputs: 400,
    player: || {
        Box::new(|input| {
            let Some((schema, mut object, old)) = read(input) else { return Answer::nothing() };
            let problems = structure::check(&Path::new("schema"), &schema).all();
            let structural = Structural::root(&schema);
            structural::drop_nulls(&mut object, &structural);
            structural::fill_defaults(&mut object, &structural);
            let mut errors = structural::validate(&Path::nil(), &object, &structural).to_string();
            errors += &structural::validate_update(&Path::nil(), &object, &old, &structural).to_string();
            errors += &structural::check_list_types(&Path::nil(), &object, &structural).to_string();
            structural::prune(&mut object, &structural);
            assert_eq!(structural::prune(&mut object, &structural), Vec::<String>::new(), "what is pruned stays so");
            answer(&problems, &errors)
        })
    },
};

pub(super) const RULES: Target = Target {
    name: "schema-rules",
    words: WORDS,
    made: Some(made_schemas::with_objects),
    inputs: 200,
    player: || {
        Box::new(|input| {
            let Some((schema, object, old)) = read(input) else { return Answer::nothing() };
            let structural = Structural::root(&schema);
            let known = KnownExpressions::default();
            let shown = |rule: &structural::ValidationRule| BadValue::from(rule.shown());
            let check = Check { known: &known, is_unchanged: false, is_broken: &|_| false, shown: &shown };
            let problems = schema_rules::check(&Path::new("schema"), &structural, &check);
            let mut budget = RUNTIME_BUDGET;
            let subject = Subject { value: &object, old: Some(&old), ratchets: true };
            let findings = RuleTree::compile(&structural).validate(&Path::nil(), subject, &mut budget);
            assert!(budget <= RUNTIME_BUDGET);
            answer(&problems, &findings.errors.to_string())
        })
    },
};

/// A schema without problems is taken, whatever it says of objects.
fn answer(problems: &ErrorList, errors: &str) -> Answer {
    if problems.is_empty() { Answer::Taken(errors.to_owned()) } else { Answer::Refused(format!("{problems}{errors}")) }
}

fn read(input: &[u8]) -> Option<(Value, Value, Value)> {
    let [schema, object, old] = parts(input);
    let object = json::parse_value(object).ok()?;
    let old = json::parse_value(old).unwrap_or_else(|_| object.clone());
    Some((json::parse_value(schema).ok()?, object, old))
}
