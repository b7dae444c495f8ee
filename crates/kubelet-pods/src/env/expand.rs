//! `$(NAME)` in commands, arguments and values.
//!
//! One pass from left to right; what is put in is not expanded again. See
//! <https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/>.

/// Replaces `$(NAME)` by what `lookup` knows. Unknown names stay as they are written, `$$` is a literal `$`, and a lone
/// `$` stays.
#[must_use]
pub(crate) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match lookup(name) {
                Some(value) => out.push_str(&value),
                None => out.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_once() {
        let lookup = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "B" => Some("$(A)".to_owned()),
            "" => Some("empty".to_owned()),
            _ => None,
        };
        let cases = [
            ("plain", "plain"),
            ("$(A)", "one"),
            ("x$(A)y$(A)z", "xoneyonez"),
            ("$(B)", "$(A)"),
            ("$(C)", "$(C)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$one"),
            ("$$", "$"),
            ("$", "$"),
            ("a$b", "a$b"),
            ("$(A", "$(A"),
            ("$()", "empty"),
            ("$(A)$(C)$$", "one$(C)$"),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, &lookup), expected, "{text}");
        }
    }
}
