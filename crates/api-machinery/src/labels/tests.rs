//! Tables for label selectors.

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn reads_and_prints() {
    let cases = [
        ("", ""),
        ("  ", ""),
        ("x", "x"),
        ("!x", "!x"),
        ("! x", "!x"),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("z=c,a==b", "a==b,z=c"),
        ("x!=a", "x!=a"),
        ("x =  a ", "x=a"),
        ("x=", "x="),
        ("x=,z= ", "x=,z="),
        ("x in (b,a, a)", "x in (a,b)"),
        ("x notin (a)", "x notin (a)"),
        ("x in ()", "x in ()"),
        ("x in (,a)", "x in (,a)"),
        ("x in (a,)", "x in (,a)"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x>5,y<7", "x>5,y<7"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("in", "in"),
        ("x=in", "x=in"),
        ("a.io/b=c", "a.io/b=c"),
    ];
    for (text, expected) in cases {
        let selector = Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(selector.to_string(), expected, "{text}");
        assert_eq!(Selector::parse(expected).unwrap(), selector, "{text}");
    }
}

#[test]
fn refuses_with_upstream_texts() {
    let cases = [
        ("x=a||y=b", "values[0][x]: Invalid value: \"a||y\": a valid label must be"),
        ("x,a=", ""),
        ("x=,", "found '', expected: identifier after ','"),
        ("x=a,,y", "found ',', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("x==a==b", "found '==', expected: ',' or 'end of string'"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("x a", "unable to parse requirement: found 'a', expected: in, notin, =, ==, !=, gt, lt"),
        ("x in a", "unable to parse requirement: found 'a' expected: '('"),
        ("x in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("x in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'"),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("x in (,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("x=(", "unable to parse requirement: found '(', expected: identifier"),
        ("x>a", "values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("-x=a", "unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist of"),
    ];
    for (text, expected) in cases {
        match Selector::parse(text) {
            Ok(_) => assert!(expected.is_empty(), "{text} should fail"),
            Err(error) => {
                let error = error.to_string();
                assert!(!expected.is_empty() && error.contains(expected), "{text}: {error}");
                let wrapped = expected.starts_with("unable") || expected.starts_with("values");
                assert_eq!(error.starts_with("unable to parse requirement: "), wrapped, "{text}: {error}");
            }
        }
    }
}

#[test]
fn matches_labels() {
    let set = labels(&[("x", "a"), ("n", "7"), ("e", "")]);
    let cases = [
        ("", true),
        ("x", true),
        ("y", false),
        ("!x", false),
        ("!y", true),
        ("x=a", true),
        ("x==b", false),
        ("x!=a", false),
        ("y!=a", true),
        ("x in (a,b)", true),
        ("x notin (a,b)", false),
        ("y notin (a,b)", true),
        ("e=", true),
        ("e in ()", true),
        ("n>6,n<8", true),
        ("n>7", false),
        ("x>1", false),
        ("y<1", false),
        ("x=a,y", false),
    ];
    for (text, expected) in cases {
        assert_eq!(Selector::parse(text).unwrap().matches(&set), expected, "{text}");
    }
    assert!(!Selector::nothing().matches(&set));
    assert!(Selector::everything().matches(&BTreeMap::new()));
}

#[test]
fn converts_the_object_form() {
    let values = ["b".to_owned(), "a".to_owned()];
    let expressions = [("k", "In", &values[..]), ("gone", "DoesNotExist", &[])];
    let selector = Selector::from_parts(&labels(&[("x", "y")]), expressions).unwrap();
    assert_eq!(selector.to_string(), "!gone,k in (a,b),x=y");
    assert!(Selector::from_parts(&BTreeMap::new(), []).unwrap().is_everything());
    let typed = LabelSelector { match_labels: labels(&[("x", "y")]), ..LabelSelector::default() };
    assert_eq!(Selector::from_label_selector(&typed).unwrap().to_string(), "x=y");
    let cases = [
        (("k", "Near", &values[..]), "\"Near\" is not a valid label selector operator"),
        (("k", "In", &[]), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (
            ("k", "Exists", &values[..]),
            "values: Invalid value: [\"a\",\"b\"]: values set must be empty for exists and does not exist",
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(Selector::from_parts(&BTreeMap::new(), [expression]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn finds_required_values_and_extends() {
    let mut selector = Selector::parse("a=b,c in (d,e)").unwrap();
    assert_eq!((selector.required_value("a"), selector.required_value("c")), (Some("b"), None));
    selector.extend([Requirement::new("b", Operator::Exists, vec![]).unwrap()]);
    assert_eq!(selector.to_string(), "a=b,b,c in (d,e)");
    assert_eq!(Selector::from_set(&labels(&[("b", "1"), ("a", "2")])).to_string(), "a=2,b=1");
    assert_eq!(format_labels(&labels(&[("b", "1"), ("a", "2")])), "a=2,b=1");
}
