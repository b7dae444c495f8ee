//! Whether the rules of a definition's schema compile, and what they may cost.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use schema::Structural;
use schema::structural::ValidationRule;

use crate::compile::{Compiled, Compiler, Known};
use crate::site::Site;

/// The most that a rule may cost for an object, as often as it can be evaluated there.
const RULE_LIMIT: u64 = 10_000_000;
/// The most that all rules of a schema may cost together.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// How many of the rules are told that cost most.
const MOST_TOLD: usize = 4;
/// A rule below this cost is not told: one percent.
const LEAST_TOLD: u64 = SCHEMA_LIMIT / 100;
const RULES: &str = "x-kubernetes-validations";

/// The expressions that a definition had before: they may use what new ones may not.
#[derive(Default)]
pub struct KnownExpressions {
    rules: BTreeSet<String>,
    messages: BTreeSet<String>,
}

impl KnownExpressions {
    /// Adds those of a schema.
    pub fn add(&mut self, schema: &Structural) {
        for rule in &schema.expression_rules {
            self.rules.insert(rule.rule.clone());
            self.messages.insert(rule.message_expression.clone());
        }
        let below = schema.properties.values().chain(&schema.additional_properties);
        below.chain(&schema.items).for_each(|below| self.add(below));
    }

    fn of(&self, rule: &ValidationRule) -> (Known, Known) {
        let known = |there: bool| if there { Known::Stored } else { Known::New };
        (known(self.rules.contains(&rule.rule)), known(self.messages.contains(&rule.message_expression)))
    }
}

/// How rules are looked at.
pub struct Check<'c> {
    /// The expressions that the definition had before.
    pub known: &'c KnownExpressions,
    /// The version had this schema before, so that single rules are not held against the request for their cost.
    pub is_unchanged: bool,
    /// Whether something else is wrong with the schema at a path or below: rules are not looked at there.
    pub is_broken: &'c dyn Fn(&Path) -> bool,
    /// How errors show a rule.
    pub shown: &'c dyn Fn(&ValidationRule) -> BadValue,
}

/// All that is wrong with the rules of a schema at `at`: those of the nodes below come before those of a node, what all
/// cost together at the end.
#[must_use]
pub fn check(at: &Path, schema: &Structural, check: &Check<'_>) -> ErrorList {
    let mut all = Checking { check, errors: ErrorList::new(), total: 0, expensive: Vec::new() };
    if let Some(site) = Site::of(schema) {
        all.site(at, &site, Context { cardinality: Some(1), uncorrelatable: None });
    }
    all.tell_total(at);
    all.errors
}

/// Where a node stands.
#[derive(Clone)]
struct Context {
    /// How many such values an object can have at most, where the schema limits that.
    cardinality: Option<u64>,
    /// The list whose items cannot be told apart.
    uncorrelatable: Option<Path>,
}

impl Context {
    /// Within a list or map of at most so many.
    fn many(&self, most: Option<u64>) -> Self {
        let cardinality = self.cardinality.zip(most).map(|(own, most)| own.saturating_mul(most));
        Self { cardinality, ..self.clone() }
    }
}

struct Checking<'c> {
    check: &'c Check<'c>,
    errors: ErrorList,
    total: u64,
    /// The rules that cost most, the most expensive first.
    expensive: Vec<(u64, Path)>,
}

impl Checking<'_> {
    fn site(&mut self, at: &Path, site: &Site<'_>, context: Context) {
        let (schema, limits) = (site.schema, &site.schema.rules);
        if let Some(below) = &site.entries {
            self.site(&at.child("additionalProperties"), below, context.many(limits.max_properties));
        }
        for (name, below) in &site.properties {
            self.site(&at.child("properties").key(name), below, context.clone());
        }
        if let Some(below) = &site.items {
            let mut within = context.many(limits.max_items);
            if schema.list_type != "map" {
                within.uncorrelatable.get_or_insert_with(|| at.clone());
            }
            self.site(&at.child("items"), below, within);
        }
        if schema.expression_rules.is_empty() || (self.check.is_broken)(at) {
            return;
        }
        let at = at.child(RULES);
        let Some(typed) = &site.typed else {
            let problem = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                           unable to convert structural schema to CEL declarations";
            self.errors.push(at.internal(problem));
            return;
        };
        let compiler = Compiler::of(typed);
        let times = context.cardinality.unwrap_or_else(|| typed.occurrences());
        for (index, rule) in schema.expression_rules.iter().enumerate() {
            self.rule(&at.index(index), rule, compiler.compile(rule, self.check.known.of(rule)), times, &context);
        }
    }

    fn rule(
        &mut self,
        at: &Path,
        rule: &ValidationRule,
        compiled: Result<Compiled, String>,
        times: u64,
        context: &Context,
    ) {
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(problem) => {
                self.errors.push(at.child("rule").invalid((self.check.shown)(rule), problem));
                return;
            }
        };
        self.charge(&at.child("rule"), "estimated rule cost", compiled.most.saturating_mul(times));
        let message = at.child("messageExpression");
        match &compiled.message {
            Some(Err(problem)) => {
                self.errors.push(message.invalid((self.check.shown)(rule), problem));
            }
            Some(Ok((_, most))) => self.charge(&message, "estimated messageExpression cost", *most),
            None => {}
        }
        if !compiled.uses_old_self {
            if let Some(given) = rule.optional_old_self {
                let detail = "may not be set if oldSelf is not used in rule";
                self.errors.push(at.child("optionalOldSelf").invalid(given, detail));
            }
        } else if let Some(within) = &context.uncorrelatable {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            self.errors.push(at.child("rule").invalid(&rule.rule, detail));
        }
    }

    fn charge(&mut self, at: &Path, what: &str, cost: u64) {
        if cost > RULE_LIMIT && !self.check.is_unchanged {
            self.errors.push(at.forbidden(exceeded(what, cost, RULE_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= LEAST_TOLD {
            let place = self.expensive.partition_point(|(other, _)| *other >= cost);
            self.expensive.insert(place, (cost, at.clone()));
            self.expensive.truncate(MOST_TOLD);
        }
    }

    fn tell_total(&mut self, at: &Path) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        for (_, at) in &self.expensive {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(at.forbidden(detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(at.forbidden(exceeded(what, self.total, SCHEMA_LIMIT)));
    }
}

fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is printed with a few digits")]
    let times = cost as f64 / limit as f64;
    let factor = match times {
        _ if times > 100.0 => "more than 100x".to_owned(),
        _ if times < 1.5 => format!("{times:.6}x"),
        _ => format!("{times:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
