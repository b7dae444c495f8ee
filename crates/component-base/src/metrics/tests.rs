//! What `/metrics` shows.

use feature_gates::Gates;

use super::options::parse_labels;
use super::*;
use crate::flags::{Errors, FlagSet, METRICS};

const REQUESTS: Desc = Desc::new("requests_total", "Requests.", Stability::Stable).labels(&["code", "verb"]).at_most(2);
const LATENCY: Desc = Desc::new("latency_seconds", "Latency.", Stability::Beta).labels(&["verb"]).buckets(&[0.1, 1.0]);
const SIZE: Desc = Desc::new("size", "Size.", Stability::Alpha);
const OLD_STABLE: Desc = Desc::new("old_stable", "Old.", Stability::Stable).deprecated("1.34.0");
const GONE_STABLE: Desc = Desc::new("gone_stable", "Gone.", Stability::Stable).deprecated("1.33.0");
const GONE_ALPHA: Desc = Desc::new("gone_alpha", "Gone.", Stability::Alpha).deprecated("1.35.0");

#[test]
fn families_show_as_upstreams() {
    let metrics = Metrics::new(MetricsOptions::default());
    metrics.counters(&REQUESTS).with(&["200", "GET"]).inc_by(2.0);
    metrics.histograms(&LATENCY).with(&["GET"]).observe(0.5);
    metrics.gauges(&SIZE);
    let text = metrics.text();
    for expected in [
        "# HELP requests_total [STABLE] Requests.\n# TYPE requests_total counter\nrequests_total{code=\"200\",verb=\"GET\"} 2\n",
        "# HELP latency_seconds [BETA] Latency.\n# TYPE latency_seconds histogram\n",
        "latency_seconds_bucket{verb=\"GET\",le=\"0.1\"} 0\nlatency_seconds_bucket{verb=\"GET\",le=\"1\"} 1\n",
        "latency_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 1\nlatency_seconds_sum{verb=\"GET\"} 0.5\n",
        "size 0\n",
        "registered_metrics_total{deprecated_version=\"\",stability_level=\"STABLE\"} 1\n",
    ] {
        assert!(text.contains(expected), "{expected}\nin\n{text}");
    }
    metrics.reset();
    assert!(!metrics.text().contains("requests_total{code"));
}

#[test]
fn series_are_bounded() {
    let metrics = Metrics::new(MetricsOptions::default());
    let family = metrics.counters(&REQUESTS);
    for code in ["1", "2", "3", "4", "1"] {
        family.with(&[code, "GET"]).inc();
    }
    let text = metrics.text();
    assert!(text.contains("requests_total{code=\"1\",verb=\"GET\"} 2\n"), "{text}");
    assert!(text.contains("requests_total{code=\"unexpected\",verb=\"unexpected\"} 2\n"), "{text}");
    family.remove(&["1", "GET"]);
    family.with(&["3", "GET"]).inc();
    assert!(metrics.text().contains("requests_total{code=\"3\",verb=\"GET\"} 1\n"));
}

#[test]
fn deprecated_and_disabled_families_are_hidden() {
    let previous = Some(crate::version::MinorVersion { major: 1, minor: 35 });
    for (show_hidden, gone) in [(None, false), (previous, true)] {
        let disabled = ["size".to_owned()].into();
        let metrics = Metrics::new(MetricsOptions { show_hidden, disabled, ..MetricsOptions::default() });
        for desc in [&OLD_STABLE, &GONE_STABLE, &GONE_ALPHA, &SIZE] {
            metrics.counters(desc).with(&[]).inc();
        }
        let text = metrics.text();
        assert!(text.contains("# HELP old_stable [STABLE] (Deprecated since 1.34.0) Old."), "{text}");
        assert_eq!(text.contains("gone_stable 1"), gone, "{text}");
        assert!(!text.contains("gone_alpha 1") && !text.contains("\nsize "), "{text}");
        assert!(text.contains("\ndisabled_metrics_total 1\n"), "{text}");
    }
}

#[test]
fn label_values_can_be_restricted() {
    let allowed_labels = parse_labels("requests_total,code='200,404',latency_seconds,verb=GET").unwrap();
    let allowed_labels = allowed_labels.into_iter().collect();
    let metrics = Metrics::new(MetricsOptions { allowed_labels, ..MetricsOptions::default() });
    let family = metrics.counters(&REQUESTS);
    family.with(&["404", "GET"]).inc();
    family.with(&["500", "GET"]).inc();
    let text = metrics.text();
    assert!(text.contains("code=\"404\"") && text.contains("code=\"unexpected\",verb=\"GET\""), "{text}");
    for bad in ["x", "a='b'", "a,b='c"] {
        assert!(parse_labels(bad).is_err(), "{bad}");
    }
}

#[test]
fn flags_are_read_and_checked() {
    const SETS: &[FlagSet] = &[METRICS];
    let read = |arguments: &[&str]| {
        let options = crate::flags::parse(SETS, arguments.iter().map(|text| (*text).to_owned())).unwrap();
        let mut errors = Errors::new();
        let parsed = MetricsOptions::from_options(&options, &mut errors);
        errors.into_result().map(|()| parsed)
    };
    let parsed = read(&["--disabled-metrics=a,b", "--show-hidden-metrics-for-version=1.35"]).unwrap();
    assert_eq!((parsed.disabled.len(), parsed.show_hidden.map(|version| version.minor)), (2, Some(35)));
    let problems = read(&["--show-hidden-metrics-for-version=1.30", "--allow-metric-labels=x"]).unwrap_err();
    assert_eq!(problems.problems().len(), 2, "{problems}");
}

#[test]
fn a_family_can_be_shared() {
    const AGES: Desc = Desc::new("ages", "Ages.", Stability::Alpha).buckets(&[1.0]);
    let metrics = Metrics::new(MetricsOptions::default());
    metrics.shared_histograms(&AGES).with(&[]).observe(0.5);
    metrics.shared_histograms(&AGES).with(&[]).observe(0.5);
    assert!(metrics.text().contains("ages_count 2\n"), "{}", metrics.text());
}

#[test]
fn a_process_tells_about_itself() {
    let metrics = Metrics::of_process(MetricsOptions::default());
    metrics.show_gates(&Gates::default());
    let text = metrics.text();
    for (line, on) in [
        ("name=\"WatchList\",stage=\"BETA\"", 1),
        ("name=\"AllowServiceExternalIPs\",stage=\"\"", 1),
        ("name=\"PodsAPI\",stage=\"ALPHA\"", 0),
        // On, as everywhere, though only nodes of Windows have a part in it.
        ("name=\"WinDSR\",stage=\"\"", 1),
    ] {
        assert!(text.contains(&format!("kubernetes_feature_enabled{{{line}}} {on}\n")), "{line}: {text}");
    }
    assert!(text.contains("kubernetes_build_info{build_date="), "{text}");
    for name in ["cpu_seconds_total", "max_fds", "open_fds", "resident_memory_bytes", "start_time_seconds"] {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("process_{name} ")));
        let value: f64 = line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap();
        assert!(value > 0.0 || name == "cpu_seconds_total", "{name} is {value}");
    }
}

/// A message as text: members that are messages in braces, as far as `shape` says which these are.
fn shown(bytes: &[u8], path: &str) -> String {
    const MESSAGES: [&str; 5] = ["4", "4.1", "4.7", "4.7.3", "4.7.12"];
    let mut decoder = api_machinery::protobuf::Decoder::new(bytes);
    let mut all = Vec::new();
    while let Some((number, value)) = decoder.next().expect("a message") {
        let own = if path.is_empty() { number.to_string() } else { format!("{path}.{number}") };
        let text = match value.bytes() {
            Ok(bytes) if MESSAGES.contains(&&*own) => format!("{{{}}}", shown(bytes, &own)),
            Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Err(_) => value.int().map_or_else(|_| "float".to_owned(), |value| value.to_string()),
        };
        all.push(format!("{number}:{text}"));
    }
    all.join(" ")
}

/// A family in protobuf.
fn family(metrics: &Metrics, name: &str) -> String {
    let all = metrics.protobuf();
    let mut rest = &all[..];
    while !rest.is_empty() {
        let (mut length, mut at) = (0, 0);
        loop {
            length |= usize::from(rest[at] & 0x7f) << (7 * at);
            at += 1;
            if rest[at - 1] < 0x80 {
                break;
            }
        }
        let (own, later) = rest[at..].split_at(length);
        let text = shown(own, "");
        if text.starts_with(&format!("1:{name} ")) {
            return text;
        }
        rest = later;
    }
    String::new()
}

#[test]
fn histograms_have_native_buckets_where_the_process_has_them() {
    for (on, native) in [(false, ""), (true, " 5:6 6:float 7:1 12:{1:0 2:1} 13:4")] {
        let metrics = Metrics::new(MetricsOptions::default().obeying(&Gates::default().with(GATES[0], on)));
        let latency = metrics.histograms(&LATENCY).with(&["GET"]);
        [0.0, 1.0, 1.0].into_iter().for_each(|value| latency.observe(value));
        let classic = "1:3 2:float 3:{1:1 2:float} 3:{1:3 2:float}";
        let expected =
            format!("1:latency_seconds 2:[BETA] Latency. 3:4 4:{{1:{{1:verb 2:GET}} 7:{{{classic}{native}}}}}");
        assert_eq!(family(&metrics, "latency_seconds"), expected, "{on}");
        let text = metrics.text();
        assert!(text.contains("latency_seconds_bucket{verb=\"GET\",le=\"0.1\"} 1\n"), "text is the same: {text}");
        metrics.counters(&REQUESTS).with(&["200", "GET"]).inc();
        let counted = "1:requests_total 2:[STABLE] Requests. 3:0 4:{1:{1:code 2:200} 1:{1:verb 2:GET} 3:\t";
        assert!(family(&metrics, "requests_total").starts_with(counted), "{:?}", family(&metrics, "requests_total"));
    }
}

#[test]
fn whoever_asks_chooses_the_form() {
    const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let metrics = Metrics::new(MetricsOptions::default());
    for (accept, is_protobuf) in [
        (String::new(), false),
        ("*/*".into(), false),
        (PROTOBUF.into(), true),
        (format!("{PROTOBUF};q=0.6,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"), true),
        (format!("{PROTOBUF};q=0.3,text/plain;version=0.0.4;q=0.4"), false),
        (PROTOBUF.replace("delimited", "text"), false),
        ("application/vnd.google.protobuf".into(), false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_str(&accept).unwrap());
        let answer = metrics.answer_to(&headers);
        let content_type = answer.headers()[header::CONTENT_TYPE].to_str().unwrap();
        assert_eq!(
            content_type.starts_with("application/vnd.google.protobuf;"),
            is_protobuf,
            "{accept}: {content_type}"
        );
    }
}
