//! Tables for reading and writing YAML.

use serde_json::json;

use super::*;

#[test]
fn scalars_read_as_upstream_reads_them() {
    let cases = [
        ("a: yes", json!({"a": true})),
        ("a: Off", json!({"a": false})),
        ("a: 'yes'", json!({"a": "yes"})),
        ("a: 0644", json!({"a": 420})),
        ("a: 0o644", json!({"a": 420})),
        ("a: 0x1f", json!({"a": 31})),
        ("a: 1e3", json!({"a": 1000})),
        ("a: -9223184467440737090.0", json!({"a": -9_223_184_467_440_737_000_i64})),
        ("a: 1e19", json!({"a": 1e19})),
        ("a: 1.0", json!({"a": 1})),
        ("a: 1.5", json!({"a": 1.5})),
        ("a: -7", json!({"a": -7})),
        ("a: 18446744073709551615", json!({"a": u64::MAX})),
        ("a: ~", json!({"a": null})),
        ("a:", json!({"a": null})),
        ("a: ''", json!({"a": ""})),
        ("a: 100m", json!({"a": "100m"})),
        ("a: 2024-01-02", json!({"a": "2024-01-02"})),
        ("a: 2024-01-02T03:04:05Z", json!({"a": "2024-01-02T03:04:05Z"})),
        ("a: !!binary aGk=", json!({"a": "aGk="})),
        ("a: 10.0.0.1", json!({"a": "10.0.0.1"})),
        ("1: x", json!({"1": "x"})),
        ("0x1f: x", json!({"31": "x"})),
        ("y: x", json!({"true": "x"})),
        ("'y': n", json!({"y": false})),
        ("true: x", json!({"true": "x"})),
        ("{\"a\": [1, {\"b\": null}]}", json!({"a": [1, {"b": null}]})),
        ("a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
        ("- a\n-\n  - b", json!(["a", ["b"]])),
        ("", Value::Null),
        ("# nothing\n", Value::Null),
    ];
    for (text, expected) in cases {
        let document = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(document, Document { value: expected, duplicates: vec![] }, "{text}");
    }
}

#[test]
fn aliases_and_merge_keys_expand() {
    let document = parse("base: &b {x: 1, z: 2}\nuse:\n  <<: *b\n  z: 3\ncopy: *b\n").unwrap();
    let base = json!({"x": 1, "z": 2});
    assert_eq!(document.value, json!({"base": base, "use": {"x": 1, "z": 3}, "copy": base}));
    assert!(document.duplicates.is_empty());
}

#[test]
fn repeated_keys_are_reported_and_the_last_wins() {
    assert_eq!(parse("{y: 1, true: 2}").unwrap().duplicates, ["line 1: key true already set in map"]);
    let document = parse("---\na: 1\nb:\n  c: 1\n  c: 2\na: 3\n").unwrap();
    assert_eq!(document.value, json!({"a": 3, "b": {"c": 2}}));
    assert_eq!(document.duplicates, ["line 5: key \"c\" already set in map", "line 6: key \"a\" already set in map"]);
}

#[test]
fn only_the_first_document_counts() {
    assert_eq!(parse("---\n# c\n---\na: 1\n---\nb: [\n").unwrap().value, json!({"a": 1}));
    let text = "# c\n---\na: 1\n--- # next\nb: |\n  --- x\n---\n\n---\nc: 3";
    assert_eq!(documents(text).collect::<Vec<_>>(), ["a: 1\n", "b: |\n  --- x\n", "c: 3"]);
}

#[test]
fn bad_texts_fail_with_a_line() {
    for (text, line) in [("a: [", 1), ("---\na: 1\n b: 2\n", 3), ("a: b: c", 1), ("a: .nan", 1), ("? [a]\n: b", 1)] {
        let error = parse(text).unwrap_err();
        assert!(error.line >= line && error.line <= line + 1, "{text}: {error}");
        let prefix = format!("error converting YAML to JSON: yaml: line {}: ", error.line);
        assert!(error.to_string().starts_with(&prefix), "{text}: {error}");
        assert!(!error.message.contains(" line "), "{error}");
    }
}

#[test]
fn growth_and_depth_are_bounded() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(parse(&bomb).is_err());
    assert!(parse(&"[".repeat(10_000)).is_err());
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(100)).is_ok());
    assert!(parse(&nested(200)).is_err());
    let block = |depth: usize| (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
    assert!(parse(&block(120)).is_ok());
    assert!(parse(&block(500)).is_err());
    assert!(parse(&"- ".repeat(2_000)).is_err());
    let chain: String = (1..2_000).map(|level| format!("a{level}: &a{level}\n- *a{}\n", level - 1)).collect();
    assert!(parse(&format!("a0: &a0 x\n{chain}")).is_err());
}

#[test]
fn writes_block_style_with_sorted_keys() {
    let value = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "spec": {"containers": [{"name": "a", "args": ["x", "-y"], "env": []}, {}], "nested": [[1, 2], []]},
        "empty": {}, "none": null, "count": 3, "on": true,
    });
    let expected = "apiVersion: v1\ncount: 3\nempty: {}\nkind: Pod\nnone: null\n\"on\": true\nspec:\n  containers:\n  - \
                    args:\n    - x\n    - -y\n    env: []\n    name: a\n  - {}\n  nested:\n  - - 1\n    - 2\n  - []\n";
    assert_eq!(to_yaml(&value), expected);
    assert_eq!(to_yaml(&json!("x")), "x\n");
    assert_eq!(to_yaml(&json!([])), "[]\n");
}

#[test]
fn quotes_what_would_read_differently() {
    let cases = [
        ("", "\"\""),
        ("yes", "\"yes\""),
        ("Null", "\"Null\""),
        ("~", "\"~\""),
        ("12", "\"12\""),
        ("0644", "\"0644\""),
        ("1_000", "\"1_000\""),
        ("1e3", "\"1e3\""),
        ("0x1f", "\"0x1f\""),
        ("1:30", "\"1:30\""),
        (".inf", "\".inf\""),
        ("2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\""),
        ("100m", "100m"),
        ("10.0.0.1", "10.0.0.1"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        (" a", "' a'"),
        ("a:", "'a:'"),
        ("it's", "it's"),
        ("'x'", "'''x'''"),
        ("*a", "'*a'"),
        ("- a", "'- a'"),
        ("-a", "-a"),
        ("---", "'---'"),
        ("{a}", "'{a}'"),
        ("a\tb", "\"a\\tb\""),
        ("\u{7}", "\"\\x07\""),
        ("x\ny", "|-\n  x\n  y"),
        ("x\n\ny\n", "|\n  x\n\n  y"),
        ("x\n\n", "|+\n  x\n"),
        (" x\ny", "\" x\\ny\""),
        ("\n", "\"\\n\""),
        ("é", "é"),
    ];
    for (text, expected) in cases {
        let yaml = to_yaml(&json!({"a": text}));
        assert_eq!(yaml, format!("a: {expected}\n"), "{text:?}");
        assert_eq!(parse(&yaml).unwrap().value, json!({"a": text}), "{text:?}");
        let in_list = json!([text, {text: [text]}]);
        assert_eq!(parse(&to_yaml(&in_list)).unwrap().value, in_list, "{text:?}");
    }
}

#[test]
fn long_lines_are_broken_at_spaces() {
    let long = format!("{}: {}, {}", "a".repeat(40), "b".repeat(40), "c".repeat(10));
    let cases = [
        (json!({"m": long}), format!("m: '{}: {},\n  {}'\n", "a".repeat(40), "b".repeat(40), "c".repeat(10))),
        (json!({"m": {"k": long.replace(": ", " ")}}), {
            format!("m:\n  k: {} {},\n    {}\n", "a".repeat(40), "b".repeat(40), "c".repeat(10))
        }),
        (json!({"m": format!("{}\u{7} x", "a".repeat(80))}), format!("m: \"{}\\x07\n  x\"\n", "a".repeat(80))),
        (json!({ long.clone(): 1 }), format!("'{long}': 1\n")),
    ];
    for (value, expected) in cases {
        let text = to_yaml(&value);
        assert_eq!(text, expected);
        assert_eq!(parse(&text).unwrap().value, value, "{text}");
    }
}

#[test]
fn addresses_are_no_numbers_of_base_60() {
    for (text, quoted) in
        [("127.0.0.1:6443", false), ("1:30", true), ("1:99", false), ("12:30:45.5", true), ("a:1", false)]
    {
        assert_eq!(to_yaml(&json!(text)).starts_with('"'), quoted, "{text}");
    }
}

#[test]
fn json_is_read_as_yaml_reads_it() {
    let long = format!("{{\"{}\": 1}}", "n".repeat(1100));
    let deep = format!("{}1{}", "{\"a\":".repeat(70), "}".repeat(70));
    for (text, is_short_way) in [
        (r#"{}"#, true),
        (r#"{"a":{"b":[1,-2,0,-0,true,false,null,"x",{},[]]},"c":""}"#, true),
        ("{\n  \"kind\": \"Pod\",\n  \"spec\": {\"args\": [\"--x=y\", \"# no comment\", \"a: b\"]}\n}\n", true),
        (r#"{"a":"\" \\ \/ \b \f \n \r \t","y":"yes","1":"2","~":"0x1f","<":"&a *a !b %c @d `e"}"#, true),
        (r#"{"n":9223372036854775807,"m":-9223372036854775808}"#, true),
        (r#"{"n":9223372036854775808}"#, false),
        (r#"{"n":1.0,"m":1e3,"o":0.1}"#, false),
        (r#"{"a":1,"a":2}"#, false),
        (r#"{"a":"\u00e4"}"#, false),
        ("{\"a\":\"\u{e4}\"}", false),
        ("{\t\"a\":\t1}", false),
        (r#"{"<<":{"a":1}}"#, false),
        ("{\"a\":1}\n---\n{\"a\":2}", false),
        ("{a: 1}", false),
        ("[1]", false),
        (&long, false),
        (&deep, false),
    ] {
        let found = json_text::read(text);
        assert_eq!(found.is_some(), is_short_way, "{text}");
        if let Some(value) = found {
            assert_eq!(parse_yaml(text), Ok(Document { value, duplicates: Vec::new() }), "{text}");
        }
    }
}
