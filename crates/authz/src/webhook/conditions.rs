//! Which requests a webhook is asked about (`matchConditions`). Expressions are CEL; [`compile`] is the one place where
//! they become conditions.

use std::sync::Arc;

use api_types::authorization_v1::SubjectAccessReviewSpec;

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

/// Makes a condition of an expression.
///
/// # Errors
/// Always for now: expressions are not supported.
pub fn compile(_expression: &str) -> Result<Arc<dyn Condition>, String> {
    Err("CEL expressions are not supported by this server; leave matchConditions empty".to_owned())
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
    use super::*;

    struct Fixed(Result<bool, String>);

    impl Condition for Fixed {
        fn holds(&self, _: &SubjectAccessReviewSpec) -> Result<bool, String> {
            self.0.clone()
        }
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
