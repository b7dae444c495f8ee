//! Each gate of the kinds on both sides: what becomes of the fields that are behind it.

use api_machinery::json;
use feature_gates::{Feature, Gates};
use kinds::gates;
use kinds::rules::{Endpoint, RuleContext, Rules};

use super::{context, kind, read};

/// A kind, what all of these bring together, a word that only the field has, and an object with it.
type Row = (&'static str, &'static [Feature], &'static str, &'static str);

const ROWS: &[Row] = &[(
    "apps/statefulsets",
    &[gates::STATEFUL_SET_MAX_UNAVAILABLE],
    "maxUnavailable",
    r#"{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}"#,
)];

fn written(rules: &dyn Rules, gates: &Gates, text: &str, old: Option<&str>, endpoint: Endpoint) -> String {
    let cx = RuleContext { gates: gates.clone(), ..context() };
    let mut object = read(rules, text);
    match old {
        Some(old) => rules.prepare_update(&cx, endpoint, &mut *object, &*read(rules, old)),
        None => rules.prepare_create(&cx, &mut *object),
    }
    json::encode(object.as_reflect())
}

#[test]
fn fields_go_while_a_feature_is_off_unless_they_are_stored() {
    for (name, features, word, text) in ROWS {
        let rules = kind(name);
        let on = features.iter().fold(Gates::default(), |gates, feature| gates.with(*feature, true));
        // A status is wiped when its object is created.
        let in_status = text.contains("\"status\"");
        let endpoint = if in_status { Endpoint::Status } else { Endpoint::Main };
        let has = |gates: &Gates, old| written(rules, gates, text, old, endpoint).contains(word);
        assert!(has(&on, Some("{}")), "{name} {word}: updated, on");
        assert!(in_status || has(&on, None), "{name} {word}: created, on");
        for feature in *features {
            let off = on.with(*feature, false);
            assert!(!has(&off, Some("{}")), "{name} {word}: updated without {}", feature.name());
            assert!(!has(&off, None), "{name} {word}: created without {}", feature.name());
            assert!(has(&off, Some(*text)), "{name} {word}: stored before {} was off", feature.name());
        }
    }
}

#[test]
fn each_gate_of_a_field_has_a_row() {
    let seen: Vec<Feature> = ROWS.iter().flat_map(|row| row.1).copied().collect();
    for feature in kinds::all().flat_map(Rules::gates) {
        assert!(seen.contains(&feature), "{}", feature.name());
    }
}
