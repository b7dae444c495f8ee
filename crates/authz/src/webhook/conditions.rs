//! Which requests a webhook is asked about (`matchConditions`): expressions over the review that it would be sent.

use std::sync::Arc;

use api_types::authorization_v1::SubjectAccessReviewSpec;
use cel::kubernetes::declared::{Declared, DeclaredTypes};
use cel::kubernetes::{self, COMPATIBLE, PER_CALL_LIMIT};
use cel::{Budget, Program, Type, Value, Variables};

/// Conditions of one webhook at most, as upstream.
pub const MAX_CONDITIONS: usize = 64;

/// A condition that was compiled.
pub trait Condition: Send + Sync {
    /// Whether the request is one to ask about.
    ///
    /// # Errors
    /// When the condition cannot be evaluated for this request.
    fn holds(&self, spec: &SubjectAccessReviewSpec) -> Result<bool, String>;
}

/// What the conditions come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Matched {
    /// All hold.
    Yes,
    /// One does not, whatever else there is.
    No,
    /// None does not hold, and this went wrong.
    Failed(String),
}

/// An expression over `request`.
struct Expression(Program);

impl Condition for Expression {
    fn holds(&self, spec: &SubjectAccessReviewSpec) -> Result<bool, String> {
        let variables = Variables::default().with("request", Value::of_struct(spec));
        match self.0.evaluate(&variables, Budget::of(PER_CALL_LIMIT)).result {
            Ok(value) => Ok(matches!(value, Value::Bool(true))),
            Err(error) => {
                Err(format!("cel evaluation error: expression '{}' resulted in error: {error}", self.0.source()))
            }
        }
    }
}

/// Makes a condition of an expression.
///
/// # Errors
/// What is wrong with it.
pub fn compile(expression: &str) -> Result<Arc<dyn Condition>, String> {
    let types = DeclaredTypes::default().with("request", Arc::new(review()));
    let env = kubernetes::environment(COMPATIBLE)
        .with_types(Arc::new(types))
        .with_variable("request", Type::object("kubernetes.SubjectAccessReviewSpec"));
    let program = env.compile(expression).map_err(|issues| format!("compilation failed: {issues}"))?;
    if program.result_type() == &Type::Bool {
        Ok(Arc::new(Expression(program)))
    } else {
        Err("must evaluate to bool".into())
    }
}

/// The type of what a webhook is asked.
fn review() -> Declared {
    let (text, list) = (Declared::text, Declared::list);
    let requirement =
        |name: &str| Declared::object(name, [("key", text()), ("operator", text()), ("values", list(text()))]);
    let selector = |name: &str, requirement| {
        Declared::object(name, [("rawSelector", text()), ("requirements", list(requirement))])
    };
    let texts = |names: &[&'static str]| names.iter().map(|name| (*name, text())).collect::<Vec<_>>();
    let mut resource = texts(&["namespace", "verb", "group", "version", "resource", "subresource", "name"]);
    let fields = selector("kubernetes.FieldSelectorAttributes", requirement("kubernetes.FieldSelectorRequirement"));
    let labels = selector("kubernetes.LabelSelectorAttributes", requirement("kubernetes.LabelSelectorRequirement"));
    resource.extend([("fieldSelector", fields), ("labelSelector", labels)]);
    let non_resource = Declared::object("kubernetes.NonResourceAttributes", texts(&["path", "verb"]));
    let mut fields = texts(&["user", "uid"]);
    fields.extend([
        ("groups", list(text())),
        ("extra", Declared::map(list(text()))),
        ("resourceAttributes", Declared::object("kubernetes.ResourceAttributes", resource)),
        ("nonResourceAttributes", non_resource),
    ]);
    Declared::object("kubernetes.SubjectAccessReviewSpec", fields)
}

pub(super) fn evaluate(conditions: &[Arc<dyn Condition>], spec: &SubjectAccessReviewSpec) -> Matched {
    let mut errors = Vec::new();
    for condition in conditions {
        match condition.holds(spec) {
            Ok(true) => {}
            Ok(false) => return Matched::No,
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Matched::Yes } else { Matched::Failed(crate::aggregate(errors)) }
}

#[cfg(test)]
mod tests {
    use api_types::authorization_v1::ResourceAttributes;

    use super::*;

    struct Fixed(Result<bool, String>);

    impl Condition for Fixed {
        fn holds(&self, _: &SubjectAccessReviewSpec) -> Result<bool, String> {
            self.0.clone()
        }
    }

    #[test]
    fn expressions_are_about_the_request() {
        let about = ResourceAttributes { namespace: "kube-system".into(), verb: "get".into(), ..Default::default() };
        let spec = SubjectAccessReviewSpec {
            user: "ann".into(),
            groups: vec!["devs".into()],
            resource_attributes: Some(about),
            ..SubjectAccessReviewSpec::default()
        };
        for (expression, expected) in [
            ("request.user == 'ann' && 'devs' in request.groups && !has(request.nonResourceAttributes)", Ok(true)),
            ("has(request.resourceAttributes) && request.resourceAttributes.namespace != 'kube-system'", Ok(false)),
            (
                "request.nonResourceAttributes.path == '/'",
                Err(
                    "cel evaluation error: expression 'request.nonResourceAttributes.path == '/'' resulted in error: no such \
                     key: nonResourceAttributes",
                ),
            ),
        ] {
            let condition = compile(expression).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(condition.holds(&spec), expected.map_err(str::to_owned), "{expression}");
        }
        let wrong = |expression: &str| compile(expression).err().unwrap_or_default();
        assert_eq!(wrong("request.user"), "must evaluate to bool");
        assert!(wrong("request.other == ''").contains("undefined field 'other'"));
    }

    #[test]
    fn what_does_not_hold_is_stronger_than_what_fails() {
        let (yes, no, bad) = (Ok(true), Ok(false), Err("bad".to_owned()));
        for (results, expected) in [
            (vec![], Matched::Yes),
            (vec![&yes, &yes], Matched::Yes),
            (vec![&yes, &no], Matched::No),
            (vec![&bad, &no], Matched::No),
            (vec![&bad, &yes], Matched::Failed("bad".to_owned())),
        ] {
            let conditions: Vec<Arc<dyn Condition>> =
                results.iter().map(|own| Arc::new(Fixed((*own).clone())) as _).collect();
            assert_eq!(evaluate(&conditions, &SubjectAccessReviewSpec::default()), expected, "{results:?}");
        }
    }
}
