//! Who may delete an object that cannot be read (KEP-3926): nobody knows what it holds up, so that a right of its own is needed.

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use authz::{Attributes, Authorizer, Decision};

const VERB: &str = "unsafe-delete-ignore-read-errors";

/// `request` is the deletion as authorizers see it.
///
/// # Errors
/// 403 for those who may not.
pub(super) async fn check(authorizer: &dyn Authorizer, request: &Attributes) -> Result<(), ApiError> {
    let outcome = authorizer.authorize(&Attributes { verb: VERB.to_owned(), ..request.clone() }).await;
    let why = match (outcome.decision, outcome.error) {
        (Decision::Allow, _) => return Ok(()),
        (_, Some(error)) => format!("error while checking permission for {VERB:?}, {error}"),
        (_, None) => format!("not permitted to do {VERB:?}, reason: {}", outcome.reason),
    };
    let resource = GroupResource { group: request.group.clone().into(), resource: request.resource.clone().into() };
    Err(ApiError::forbidden(&resource, &request.name, why))
}

#[cfg(test)]
mod tests {
    use api_types::authentication_v1::UserInfo;
    use async_trait::async_trait;
    use authz::{Outcome, RuleSet};

    use super::*;

    struct Fixed(Outcome);

    #[async_trait]
    impl Authorizer for Fixed {
        async fn authorize(&self, request: &Attributes) -> Outcome {
            assert_eq!((&*request.verb, &*request.name), ("unsafe-delete-ignore-read-errors", "a"));
            self.0.clone()
        }

        fn rules_for(&self, _: &UserInfo, _: &str) -> RuleSet {
            RuleSet::default()
        }
    }

    #[tokio::test]
    async fn a_right_of_its_own_is_needed() {
        let request = Attributes {
            verb: "delete".to_owned(),
            resource: "configmaps".to_owned(),
            name: "a".to_owned(),
            ..Attributes::default()
        };
        let front = "configmaps \"a\" is forbidden: ";
        for (outcome, expected) in [
            (Outcome::allow(""), None),
            (
                Outcome::no_opinion("no rule"),
                Some("not permitted to do \"unsafe-delete-ignore-read-errors\", reason: no rule"),
            ),
            (
                Outcome { error: Some("no answer".to_owned()), ..Outcome::no_opinion("") },
                Some("error while checking permission for \"unsafe-delete-ignore-read-errors\", no answer"),
            ),
        ] {
            let refused = check(&Fixed(outcome), &request).await.err().map(|error| error.message);
            assert_eq!(refused, expected.map(|text| format!("{front}{text}")));
        }
    }
}
