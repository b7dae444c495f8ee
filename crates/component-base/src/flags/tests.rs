//! pflag's syntax, texts and quirks, one by one.

use std::time::Duration;

use feature_gates::{Feature, Known};

use super::*;

const FLAGS: &[FlagSet] = &[
    FlagSet {
        title: "generic",
        flags: &[
            Flag::bool("enable", "true").help("A switch."),
            Flag::string("name", "x").help("A text."),
            Flag::int32("count", "3").help("A number."),
            Flag::uint("size", "0").help("A size."),
            Flag::float("chance", "0.5").help("A chance."),
            Flag::duration("timeout", "1h0m0s").help("A time.\nTwo lines of it."),
            Flag::string_slice("items", "a,b").help("Some texts."),
            Flag::string_array("files", "").help("More texts."),
            Flag::int_slice("curves", "").help("Some numbers."),
            Flag::ip("address", "").help("An address."),
            Flag::map("labels", "").help("Pairs."),
            Flag::map_with("limits", '<', "").help("Bounds."),
            Flag::map_bare_keys("config", "").help("Switches."),
            Flag::string("old", "").help("An old flag.").deprecated("use --name instead"),
            Flag::string("file-only", "").help("A kubelet flag.").deprecated("use the file").shown(),
            FEATURE_GATES,
        ],
    },
    LOGS,
    GLOBAL,
];

fn parse_line(line: &str) -> Result<Options, Invalid> {
    parse(FLAGS, line.split_whitespace().map(str::to_owned))
}

#[test]
fn tables_are_sound() {
    assert_eq!(check_table(FLAGS), Vec::<String>::new());
    const BAD: &[FlagSet] =
        &[FlagSet { title: "x", flags: &[Flag::int("a_b", "x"), Flag::bool("a_b", "false").help("h")] }];
    assert_eq!(check_table(BAD).len(), 5);
}

#[test]
fn values_parse_as_pflags_do() {
    let cases: &[(&str, &str, &str)] = &[
        ("", "enable", "true"),
        ("--enable=f", "enable", "false"),
        ("--enable=false --enable", "enable", "true"),
        ("--name=a --name b", "name", "b"),
        ("--name --enable", "name", "--enable"),
        ("--name=", "name", ""),
        ("--name=a=b", "name", "a=b"),
        ("--count -1", "count", "-1"),
        ("--count=0x10", "count", "16"),
        ("--chance 0.25", "chance", "0.25"),
        ("--timeout 90m", "timeout", "1h30m0s"),
        ("--timeout=-1.5s", "timeout", "-1.5s"),
        ("", "items", "[a,b]"),
        ("--items c,d --items e", "items", "[c,d,e]"),
        ("--items \"a,b\",c", "items", "[a,b,c]"),
        ("--items=", "items", "[]"),
        ("--files a,b --files c", "files", "[a,b,c]"),
        ("--curves 29,23", "curves", "[29,23]"),
        ("", "address", "<nil>"),
        ("--address ::1", "address", "::1"),
        ("--labels a=b,c=d --labels a=e", "labels", "a=b,c=d,a=e"),
        ("--limits memory.available<100Mi", "limits", "memory.available=100Mi"),
        ("--config api/all,apps/v1=false", "config", "api/all=,apps/v1=false"),
        ("--log_flush_frequency 1s", "log-flush-frequency", "1s"),
        ("--name a_b", "name", "a_b"),
        ("--name --a_b", "name", "--a_b"),
        ("-v4", "v", "4"),
        ("-v=4", "v", "4"),
        ("-v 4", "v", "4"),
        ("--v=4", "v", "4"),
        ("--version", "version", "true"),
        ("--version=raw", "version", "raw"),
        ("-h", "help", "true"),
    ];
    for (line, name, expected) in cases {
        let options = parse_line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let (_, value) = options.iter().find(|(flag, _)| flag.name == *name).unwrap();
        assert_eq!(value.to_string(), *expected, "{line}");
    }
}

#[test]
fn mistakes_have_upstreams_texts() {
    let cases = [
        ("--nope", "unknown flag: --nope"),
        ("--no_pe=1", "unknown flag: --no-pe"),
        ("--enabl", "unknown flag: --enabl"),
        ("-x", "unknown shorthand flag: 'x' in -x"),
        ("--name", "flag needs an argument: --name"),
        (
            "--count x --enable=maybe",
            "[invalid argument \"maybe\" for \"--enable\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax, \
             invalid argument \"x\" for \"--count\" flag: strconv.ParseInt: parsing \"x\": invalid syntax]",
        ),
        (
            "--count 2147483648",
            "invalid argument \"2147483648\" for \"--count\" flag: strconv.ParseInt: parsing \"2147483648\": value out of range",
        ),
        ("-vx", "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("--timeout 5", "invalid argument \"5\" for \"--timeout\" flag: time: missing unit in duration \"5\""),
        ("--timeout 5y", "invalid argument \"5y\" for \"--timeout\" flag: time: unknown unit \"y\" in duration \"5y\""),
        ("--address 1.2", "invalid argument \"1.2\" for \"--address\" flag: failed to parse IP: \"1.2\""),
        ("--labels a", "invalid argument \"a\" for \"--labels\" flag: malformed pair, expect string=string"),
        (
            "--items a\"b",
            "invalid argument \"a\\\"b\" for \"--items\" flag: parse error on line 1, column 2: bare \" in non-quoted field",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(parse_line(line).unwrap_err().to_string(), expected, "{line}");
    }
}

#[test]
fn what_is_not_a_flag_is_an_argument() {
    let options = parse_line("--enable false x -- --name").unwrap();
    assert!(options.bool("enable"));
    assert_eq!(options.arguments(), ["false", "x", "--name"]);
}

#[test]
fn flags_win_over_files_and_files_over_defaults() {
    let mut options = parse_line("--count 5").unwrap();
    options.set_from_file("count", "7").unwrap();
    options.set_from_file("timeout", "2m").unwrap();
    assert_eq!((options.int("count"), options.is_set("count")), (5, true));
    assert_eq!((options.duration("timeout"), options.is_set("timeout")), (Duration::from_secs(120), false));
    assert!(options.set_from_file("chance", "much").is_err());

    let file = vec![("a".to_owned(), "file".to_owned()), ("b".to_owned(), "file".to_owned())];
    let mut options = parse_line("--labels a=flag").unwrap();
    options.merge_from_file("labels", file.clone()).unwrap();
    options.merge_from_file("config", file).unwrap();
    assert_eq!((&*options.map("labels")["a"], &*options.map("labels")["b"]), ("flag", "file"));
    assert_eq!(options.map("config")["a"], "file");
}

#[test]
fn a_file_may_replace_what_was_given() {
    let mut options = parse_line("--count 5 --timeout 3s").unwrap();
    for (flag, text) in [("count", Some("7")), ("timeout", None), ("chance", None)] {
        options.replace_from_file(flag, text).unwrap();
    }
    assert_eq!((options.int("count"), options.is_set("count")), (7, true));
    let untouched = parse_line("").unwrap();
    assert_eq!((options.duration("timeout"), options.is_set("timeout")), (untouched.duration("timeout"), false));
    assert!(options.replace_from_file("count", Some("x")).is_err());
    let mut named = parse_line("--name a=1").unwrap();
    named.join_from_file("name", "b=2").unwrap();
    options.join_from_file("name", "b=2").unwrap();
    assert_eq!((named.string("name"), options.string("name")), ("a=1,b=2", "b=2"));
    let ignored =
        ["count", "timeout"].map(|flag| format!("Flag --{flag} is ignored, as there is a configuration file"));
    assert_eq!(options.warnings(), ignored);
}

#[test]
fn deprecated_flags_warn_when_used() {
    assert!(parse_line("").unwrap().warnings().is_empty());
    let used = parse_line("--old 1").unwrap();
    assert_eq!(used.warnings(), ["Flag --old has been deprecated, use --name instead"]);
}

#[test]
fn durations_print_as_gos() {
    for text in ["0s", "1ns", "1.5µs", "100ms", "1.5s", "1m0s", "1m0.5s", "1h0m0s", "75h30m0s", "-1m0s"] {
        assert_eq!(format_duration(parse_duration(text).unwrap()), text);
    }
    for text in ["", "-", "1", "1.s.", "s", "9999999h", "１s"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

const NEW: Feature = Feature::named("ControllerManagerReleaseLeaderElectionLockOnExit");
const WATCH_LIST: Feature = Feature::named("WatchList");
const GATES: Known = Known::switching(&[&[NEW, WATCH_LIST]]);

#[test]
fn gates_are_set_and_checked() {
    let cases: &[(&str, Option<bool>, &str)] = &[
        ("WatchList=false", Some(false), ""),
        ("kube:WatchList=false", Some(false), ""),
        ("WatchList=true,AllAlpha=false", Some(true), ""),
        ("Nope=true", None, "unrecognized feature gate: Nope"),
        (
            "KubeletPSI=false,NFTablesProxyMode=true",
            None,
            "cannot set feature gate KubeletPSI to false, feature is locked to true",
        ),
        (
            "NFTablesProxyMode=true",
            Some(true),
            "Setting GA feature gate NFTablesProxyMode=true. It will be removed in a future release.",
        ),
        ("WatchList", None, "missing bool value for WatchList"),
        (
            "WatchList=maybe",
            None,
            "invalid value of WatchList=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        ),
        ("other:WatchList=true", None, "component not registered: other"),
        (
            "WatchList=true,kube:PodsAPI=false",
            None,
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
    ];
    for (text, watch_list, message) in cases {
        let options = parse_line(&format!("--feature-gates={text}")).unwrap();
        let mut errors = Errors::new();
        let settings = gates(&options, &GATES, Versions::default(), &mut errors);
        let failed = errors.into_result().map_err(|error| error.to_string());
        match watch_list {
            Some(on) => {
                assert_eq!(settings.gates.enabled(WATCH_LIST), *on, "{text}");
                assert_eq!((failed, settings.warnings.concat().as_str()), (Ok(()), *message), "{text}");
            }
            None => assert_eq!(failed, Err((*message).to_owned()), "{text}"),
        }
    }
}

#[test]
fn help_is_as_agreed() {
    let text = help("kube-test", "Tests flags.", FLAGS, &GATES);
    let golden = include_str!("testdata/help.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/flags/testdata/help.txt");
        std::fs::write(path, &text).unwrap();
        return;
    }
    assert_eq!(text, golden);
}
