//! Notes of policies for the audit log: one for each policy and key, whatever bindings and parameters it was evaluated with.

use crate::Attributes;

/// So many bytes of a value are published.
const MAX_VALUE_BYTES: usize = 10 * 1024;
/// What stands between the values of several evaluations.
const SEPARATOR: &str = ", ";

/// Values by key, in the order in which keys came.
#[derive(Debug, Default)]
pub(crate) struct Annotations(Vec<(String, Vec<String>)>);

impl Annotations {
    /// Notes a value, once.
    pub(crate) fn add(&mut self, policy: &str, key: &str, value: &str) {
        let key = format!("{policy}/{key}");
        let value = cut(value).to_owned();
        match self.0.iter_mut().find(|(own, _)| *own == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.0.push((key, vec![value])),
        }
    }

    /// Hands them to the audit log.
    pub(crate) fn publish(self, attributes: &Attributes) {
        for (key, values) in self.0 {
            attributes.annotations.add(key, values.join(SEPARATOR));
        }
    }
}

fn cut(value: &str) -> &str {
    let end = value.floor_char_boundary(MAX_VALUE_BYTES.min(value.len()));
    value.get(..end).unwrap_or(value)
}
