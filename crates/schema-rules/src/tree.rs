//! The rules of a schema, compiled to look at many objects.

use std::sync::Arc;

use api_machinery::field_path::Path;
use cel::Program;
use cel::kubernetes::declared::Declared;
use schema::Structural;
use schema::structural::{ValidationRule, field_path};
use serde_json::Value;

use crate::compile::{Compiler, Known};
use crate::evaluate::{Evaluation, Findings};
use crate::site::Site;

/// The compiled rules of a schema.
pub struct RuleTree {
    root: Option<Node>,
}

/// What rules look at.
#[derive(Clone, Copy)]
pub struct Subject<'v> {
    /// The value.
    pub value: &'v Value,
    /// What was there before.
    pub old: Option<&'v Value>,
    /// Whether only a warning is made of what was no better before.
    pub ratchets: bool,
}

/// A node with rules, or with some below.
pub(crate) struct Node {
    /// `type` of the schema; may be empty.
    pub(crate) kind: String,
    pub(crate) declared: Option<Arc<Declared>>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) properties: Vec<(String, Node)>,
    pub(crate) entries: Option<Box<Node>>,
    pub(crate) items: Option<Box<Node>>,
    /// The members that tell the items of this list apart; empty for other lists.
    pub(crate) keys: Vec<String>,
}

/// A rule of a node.
pub(crate) struct Rule {
    pub(crate) stated: ValidationRule,
    /// The programs, or why there are none.
    pub(crate) compiled: Result<Programs, String>,
    /// The field that it is about, from where it stands.
    pub(crate) about: Option<String>,
}

pub(crate) struct Programs {
    pub(crate) rule: Program,
    pub(crate) message: Option<Program>,
    pub(crate) uses_old_self: bool,
}

impl RuleTree {
    /// Compiles the rules of a schema that is in use.
    #[must_use]
    pub fn compile(schema: &Structural) -> Self {
        Self { root: Site::of(schema).map(|site| Node::of(&site)) }
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Evaluates all rules on a value at `at`, and takes what that costs from the budget.
    pub fn validate(&self, at: &Path, subject: Subject<'_>, budget: &mut u64) -> Findings {
        let mut evaluation = Evaluation::new(budget);
        if let Some(root) = &self.root {
            evaluation.start(at, root, subject);
        }
        evaluation.findings
    }
}

impl Node {
    fn of(site: &Site<'_>) -> Self {
        let schema = site.schema;
        let is_map = schema.list_type == "map";
        Self {
            kind: schema.kind.clone(),
            declared: site.typed.as_ref().map(|typed| Arc::clone(&typed.declared)),
            rules: rules(site),
            properties: site.properties.iter().map(|(name, below)| ((*name).to_owned(), Self::of(below))).collect(),
            entries: site.entries.as_deref().map(|below| Box::new(Self::of(below))),
            items: site.items.as_deref().map(|below| Box::new(Self::of(below))),
            keys: if is_map { schema.list_map_keys.clone() } else { Vec::new() },
        }
    }
}

fn rules(site: &Site<'_>) -> Vec<Rule> {
    let compiler = site.typed.as_ref().map(Compiler::of);
    let stated = site.schema.expression_rules.iter().filter(|rule| !rule.rule.trim().is_empty());
    let compile = |stated: &ValidationRule| {
        let compiler = compiler.as_ref().ok_or("the schema says too little of the value")?;
        let compiled = compiler.compile(stated, (Known::Stored, Known::Stored))?;
        let message = compiled.message.transpose()?.map(|(program, _)| program);
        Ok(Programs { rule: compiled.program, message, uses_old_self: compiled.uses_old_self })
    };
    stated
        .map(|stated| Rule {
            compiled: compile(stated),
            about: field_path(site.schema, &stated.field_path).map(|path| path.to_string()),
            stated: stated.clone(),
        })
        .collect()
}
