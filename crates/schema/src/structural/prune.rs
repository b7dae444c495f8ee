//! Dropping what a schema does not declare.

use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::Reflect as _;
use serde_json::Value;

use super::{Structural, is_type_meta};

/// Most unknown fields that are reported.
const MAX_REPORTS: usize = 100;

/// Drops undeclared members in place, and returns their paths, such as `spec.list[0].foo`: sorted, those of the metadata of
/// embedded objects last, as upstream looks at them when it is done with the schema.
/// `metadata` of whole objects is not touched.
pub fn prune(value: &mut Value, schema: &Structural) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new(), of_metadata: Vec::new() };
    pruner.visit(value, Some(schema), false);
    let Pruner { mut unknown, mut of_metadata, .. } = pruner;
    unknown.sort_unstable();
    of_metadata.sort_unstable();
    unknown.append(&mut of_metadata);
    unknown.truncate(MAX_REPORTS);
    unknown
}

/// Whether a value has no undeclared members. What the metadata of embedded objects has is not asked.
pub fn is_pruned(value: &Value, schema: &Structural) -> bool {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new(), of_metadata: Vec::new() };
    pruner.visit(&mut value.clone(), Some(schema), false);
    pruner.unknown.is_empty()
}

struct Pruner {
    path: String,
    unknown: Vec<String>,
    of_metadata: Vec<String>,
}

impl Pruner {
    /// `lenient` keeps members at places that no schema describes, as below a node that preserves unknown fields.
    fn visit(&mut self, value: &mut Value, schema: Option<&Structural>, lenient: bool) {
        match value {
            Value::Object(map) => {
                let keeps = schema.map_or(lenient, |schema| schema.preserve_unknown_fields);
                map.retain(|name, member| self.keep_member(name, member, schema, keeps));
            }
            Value::Array(items) => {
                let keeps = schema.map_or(lenient, |schema| schema.preserve_unknown_fields);
                let item_schema = schema.and_then(|schema| schema.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    self.below(&format!("[{index}]"), |pruner| pruner.visit(item, item_schema, keeps));
                }
            }
            _ => {}
        }
    }

    fn keep_member(&mut self, name: &str, member: &mut Value, schema: Option<&Structural>, keeps: bool) -> bool {
        let step = if self.path.is_empty() { name.to_owned() } else { format!(".{name}") };
        let Some(schema) = schema else {
            if !keeps {
                report(&mut self.unknown, &self.path, &step);
            }
            return keeps;
        };
        if schema.is_object_root() && is_type_meta(name) {
            if name == "metadata" && !schema.root {
                self.below(&step, |pruner| pruner.keep_metadata(member));
            }
            return true;
        }
        match schema.member(name) {
            Some(of) => self.below(&step, |pruner| pruner.visit(member, Some(of), false)),
            None if schema.any_properties => self.below(&step, |pruner| pruner.visit(member, None, keeps)),
            None if keeps => {}
            None => {
                report(&mut self.unknown, &self.path, &step);
                return false;
            }
        }
        true
    }

    /// Metadata of an embedded object is what it is of any object.
    fn keep_metadata(&mut self, value: &mut Value) {
        let Value::Object(map) = value else { return };
        let known = ObjectMeta::default().struct_type().fields;
        map.retain(|name, _| {
            let keeps = known.iter().any(|field| field.name == name);
            if !keeps {
                report(&mut self.of_metadata, &self.path, &format!(".{name}"));
            }
            keeps
        });
    }

    fn below(&mut self, step: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        visit(self);
        self.path.truncate(length);
    }
}

fn report(unknown: &mut Vec<String>, path: &str, step: &str) {
    if unknown.len() < MAX_REPORTS {
        unknown.push(format!("{path}{step}"));
    }
}
