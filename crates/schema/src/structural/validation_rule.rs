//! A rule in the expression language, as a schema states it.

use serde_json::Value;

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationRule {
    /// The expression that must be true.
    pub rule: String,
    /// What is told when it is not.
    pub message: String,
    /// An expression that makes what is told.
    pub message_expression: String,
    /// The reason of the error; nothing is `FieldValueInvalid`.
    pub reason: Option<String>,
    /// The field that the error is about, from where the rule stands.
    pub field_path: String,
    /// Whether the rule also holds where there was nothing before.
    pub optional_old_self: Option<bool>,
}

impl ValidationRule {
    pub(super) fn read(rule: &Value) -> Self {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        Self {
            rule: text("rule").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            message_expression: text("messageExpression").unwrap_or_default(),
            reason: text("reason"),
            field_path: text("fieldPath").unwrap_or_default(),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }

    /// What is told of it in errors: its message, or else the expression.
    pub fn shown(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }
}
