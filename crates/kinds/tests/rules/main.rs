//! The rules of the kinds as the engine runs them: what a write of an object is told, field by field and word by word.
//!
//! Each table has rows of (what is written, over what, through which endpoint) and the errors, in order. The words of
//! single rules are tested beside them; here it is the kinds that are tested, with defaults and preparation.

mod autoscaling;
mod cluster;
mod core;
mod declared;
mod defaults;
mod facts;
mod gates;
mod golden;
mod storage;
mod tables;
mod workloads;

use api_machinery::object::Object;
use kinds::rules::{Endpoint, RuleContext, Rules};

/// A kind by `group/resource`, the group empty for core; all of these are version 1.
fn kind(name: &str) -> &'static dyn Rules {
    let (group, resource) = name.split_once('/').unwrap_or(("", name));
    kinds::find(group, "v1", resource).unwrap_or_else(|| panic!("there is no kind {name}"))
}

fn context() -> RuleContext {
    RuleContext { now: api_machinery::time::Time::from_unix_seconds(1), ..RuleContext::default() }
}

/// An object as the server has it after decoding: with defaults, and a uid where it has a name.
fn read(rules: &dyn Rules, text: &str) -> Box<dyn Object> {
    let mut object = rules.new_object();
    let decoded = api_machinery::json::decode(text.as_bytes(), object.as_reflect_mut());
    assert!(decoded.expect(text).problems.is_empty(), "{text}");
    if object.meta().name.is_empty() {
        object.meta_mut().name = "n".into();
    }
    if rules.info().namespaced && object.meta().namespace.is_empty() {
        object.meta_mut().namespace = "s".into();
    }
    object.meta_mut().uid = "u".into();
    rules.set_defaults(&mut *object);
    object
}

/// What is told of an object that is created.
fn created(name: &str, text: &str) -> Vec<String> {
    let rules = kind(name);
    let mut object = read(rules, text);
    rules.prepare_create(&context(), &mut *object);
    rules.validate_create(&context(), &*object).iter().map(ToString::to_string).collect()
}

/// What is told of an object that replaces another through an endpoint.
fn updated(name: &str, endpoint: Endpoint, new: &str, old: &str) -> Vec<String> {
    let rules = kind(name);
    let old = read(rules, old);
    let mut new = read(rules, new);
    rules.prepare_update(&context(), endpoint, &mut *new, &*old);
    let mut errors = rules.validate_as_new(&context(), endpoint, &*new, &*old).unwrap_or_default();
    errors.extend(rules.validate_update(&context(), endpoint, &*new, &*old));
    errors.iter().map(ToString::to_string).collect()
}

/// Checks a table of creations.
fn check_created(name: &str, rows: &[(&str, &[&str])]) {
    for (text, expected) in rows {
        assert_eq!(created(name, text), *expected, "{name} {text}");
    }
}

/// Checks a table of updates through the main endpoint.
fn check_updated(name: &str, rows: &[(&str, &str, &[&str])]) {
    for (old, new, expected) in rows {
        assert_eq!(updated(name, Endpoint::Main, new, old), *expected, "{name} {old} {new}");
    }
}
