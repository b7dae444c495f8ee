//! The flags of webhooks that a cloud brings along (`CloudControllerManagerWebhook`). No cloud that this build knows has any, so
//! that nothing is served, as upstream's binary serves nothing then; what flags say is checked all the same.

use component_base::Feature;
use component_base::flags::{Errors, Flag, FlagSet, Options};

/// A cloud's webhooks are served.
pub(crate) const GATE: Feature = Feature::named("CloudControllerManagerWebhook");

/// The webhooks of the clouds that this build knows.
const KNOWN: &[&str] = &[];

/// Refused where the gate is off.
pub(crate) const FLAGS: FlagSet = FlagSet {
    title: "webhooks",
    flags: &[
        Flag::ip("webhook-bind-address", "0.0.0.0").help("The address to serve webhooks at."),
        Flag::string("webhook-cert-dir", "").help("The directory of the certificate for webhooks."),
        Flag::bool("webhook-disable-http2-serving", "false").help("Serve webhooks over HTTP/1.1 only."),
        Flag::int("webhook-secure-port", "10260").help("The port to serve webhooks at; 0 for none."),
        Flag::string("webhook-tls-cert-file", "").help("The certificate for webhooks, with its intermediate ones."),
        Flag::string_slice("webhook-tls-cipher-suites", "").help("The cipher suites for webhooks."),
        Flag::string_slice("webhook-tls-curve-preferences", "").help("The key exchanges for webhooks."),
        Flag::string("webhook-tls-min-version", "").help("The lowest version of TLS for webhooks."),
        Flag::string("webhook-tls-private-key-file", "").help("The key of the certificate for webhooks."),
        Flag::string("webhook-tls-sni-cert-key", "")
            .help("A further certificate for webhooks, its key, and the names that it is for."),
        Flag::string_slice("webhooks", "")
            .help("The webhooks to serve: '*' for all, 'foo' for one, '-foo' for all but it. None are known."),
    ],
};

/// Looks at the flags.
pub(crate) fn check(options: &Options, is_on: bool, errors: &mut Errors) {
    if !is_on {
        for flag in FLAGS.flags {
            let text = format!("--{}: the feature gate {} is off", flag.name, GATE.name());
            errors.check(!options.is_set(flag.name), text);
        }
        return;
    }
    for name in options.strings("webhooks").iter().filter(|name| *name != "*") {
        let name = name.strip_prefix('-').unwrap_or(name);
        errors.check(KNOWN.contains(&name), format!("{name:?} is not in the list of known webhooks"));
    }
    let port = options.int("webhook-secure-port");
    errors.check(
        (0..=i64::from(u16::MAX)).contains(&port),
        format!(
            "--webhook-secure-port {port} must be between 0 and 65535, inclusive. A value of 0 disables the webhook \
             endpoint entirely."
        ),
    );
    errors.check(
        port == 0 || port != options.int("secure-port"),
        "--webhook-secure-port cannot be the same value as --secure-port",
    );
}

#[cfg(test)]
mod tests {
    use component_base::flags::parse;

    use super::*;
    use crate::COMPONENT;

    #[test]
    fn flags_of_webhooks_are_checked_where_there_may_be_any() {
        for (arguments, is_on, expected) in [
            ("", false, vec![]),
            ("--webhooks=* --webhook-secure-port=0", false, vec!["--webhook-secure-port: ", "--webhooks: "]),
            ("--webhooks=*,-a,b", true, vec!["\"a\" is not in the list of known webhooks", "\"b\" is not in the list"]),
            ("--webhook-secure-port=70000", true, vec!["--webhook-secure-port 70000 must be between 0 and 65535"]),
            ("--webhook-secure-port=10258", true, vec!["cannot be the same value as --secure-port"]),
            ("--webhooks=* --webhook-secure-port=0 --webhook-cert-dir=/x", true, vec![]),
        ] {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            let options = parse(COMPONENT.flags, arguments.clone()).unwrap();
            let mut errors = Errors::new();
            check(&options, is_on, &mut errors);
            let problems = errors.into_result().map_or_else(|error| error.problems().to_vec(), |()| Vec::new());
            assert_eq!(problems.len(), expected.len(), "{arguments:?}: {problems:?}");
            for (problem, expected) in problems.iter().zip(expected) {
                assert!(problem.contains(expected), "{problem}");
            }
        }
    }
}
