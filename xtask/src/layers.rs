//! Arrows between crates go strictly down in layer: each crate states its own in `package.metadata.coxswain.layer`.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use crate::metadata::{members, text};

/// Sideways edges that exist for a stated reason.
const EXCEPTIONS: &[(&str, &str, &str)] =
    &[("api-machinery", "api-derive", "the macro writes the tables that the trait reads; they are one thing")];

pub(crate) fn problems(metadata: &Value) -> Result<Vec<String>> {
    let members = members(metadata);
    let mut problems = Vec::new();
    let mut layers = BTreeMap::new();
    for package in &members {
        match package["metadata"]["coxswain"]["layer"].as_u64() {
            Some(layer) => {
                layers.insert(text(package, "name"), layer);
            }
            None => problems.push(format!("{}: states no layer in package.metadata.coxswain", text(package, "name"))),
        }
    }
    for package in &members {
        let from = text(package, "name");
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may look at more than the code they test.
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let to = text(dependency, "name");
            let (Some(above), Some(below)) = (layers.get(from), layers.get(to)) else { continue };
            let excepted = EXCEPTIONS.iter().any(|(a, b, _)| (*a, *b) == (from, to));
            if below >= above && !excepted {
                problems.push(format!(
                    "{from} (layer {above}) may not depend on {to} (layer {below}): arrows go down, so that a crate \
                     can be read, tested and swapped knowing only what is below it"
                ));
            }
        }
    }
    Ok(problems)
}
