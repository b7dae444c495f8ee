//! Whether a value fits its type, as an applied object must.

use std::collections::BTreeSet;

use api_machinery::quote::go_quote;
use serde_json::Value;

use super::item_step;
use crate::apply::path::{Element, FieldPath, print_path};
use crate::strategic::go_value;
use crate::type_node::{Class, ListKind, Scalar, TypeNode};

/// Most problems that are collected.
const MAX_PROBLEMS: usize = 100;

/// One misfit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationProblem {
    /// Where.
    pub path: FieldPath,
    /// What.
    pub message: String,
}

impl std::fmt::Display for ValidationProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", print_path(&self.path), self.message)
    }
}

/// All misfits of a value. Null fits everything.
pub fn validate(value: &Value, node: TypeNode<'_>) -> Vec<ValidationProblem> {
    let mut walk = Walk { path: Vec::new(), problems: Vec::new() };
    walk.visit(value, node);
    walk.problems
}

struct Walk {
    path: FieldPath,
    problems: Vec<ValidationProblem>,
}

impl Walk {
    fn report(&mut self, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(ValidationProblem { path: self.path.clone(), message: message.into() });
        }
    }

    fn visit(&mut self, value: &Value, node: TypeNode<'_>) {
        match (node.class_for(value), value) {
            (_, Value::Null) | (Class::Deduced, _) => {}
            (Class::Scalar(scalar), _) => self.scalar(value, scalar),
            (Class::Map { .. }, Value::Object(map)) => {
                for (name, member) in map {
                    self.path.push(Element::field(name));
                    match node.member(name) {
                        Some(of) => self.visit(member, of),
                        None => self.report("field not declared in schema"),
                    }
                    self.path.pop();
                }
            }
            (Class::Map { .. }, _) => self.report(format!("expected map, got &{{{}}}", go_value(value))),
            (Class::List(kind), Value::Array(items)) => self.list(items, node, kind),
            (Class::List(_), _) => self.report(format!("expected list, got &{{{}}}", go_value(value))),
        }
    }

    fn scalar(&mut self, value: &Value, scalar: Scalar) {
        match (scalar, value) {
            (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Numeric, Value::Number(_))
            | (Scalar::String, Value::String(_))
            | (Scalar::Any, Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
            (Scalar::Boolean, _) => self.report(format!("expected boolean, got {}", shown(value))),
            (Scalar::Numeric, _) => self.report(format!("expected numeric (int or float), got {}", type_name(value))),
            (Scalar::String, _) => self.report(format!("expected string, got {}", shown(value))),
            (Scalar::Any, _) => self.report(format!("expected scalar, got {}", shown(value))),
        }
    }

    fn list(&mut self, items: &[Value], node: TypeNode<'_>, kind: ListKind) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let step = match item_step(node, kind, item, index) {
                Ok(step) => step,
                Err(problem) => {
                    self.report(format!("element {index}: {problem}"));
                    continue;
                }
            };
            if !seen.insert(step.clone()) {
                self.report(format!("duplicate entries for key {step}"));
            }
            self.path.push(step);
            self.visit(item, node.item());
            self.path.pop();
        }
    }
}

/// A value as Go prints it in full, with the name of its holder.
fn shown(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value))
}

fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{}:{}", go_quote(name), go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}
