//! Expressions about a request, as webhooks and policies have them: what they see of it, whether match conditions hold, and
//! how the authorizer is asked in between.

mod asking;
mod conditions;
mod request;

pub(crate) use asking::{answered, answers};
pub(crate) use conditions::{Answer, Held, holds};
pub(crate) use request::{lateness, request};

/// Several errors in one text, as upstream joins them: each once.
fn joined(errors: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for error in errors {
        if !seen.contains(&error.as_str()) {
            seen.push(error);
        }
    }
    if let [one] = seen.as_slice() { (*one).to_owned() } else { format!("[{}]", seen.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_once_each() {
        for (errors, text) in [(&["a"][..], "a"), (&["a", "a"], "a"), (&["a", "b", "a"], "[a, b]")] {
            let errors: Vec<String> = errors.iter().map(|error| (*error).to_owned()).collect();
            assert_eq!(joined(&errors), text);
        }
    }
}
