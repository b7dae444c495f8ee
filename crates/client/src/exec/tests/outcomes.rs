//! How runs end, and what is told and counted of that.

use std::time::SystemTime;

use component_base::metrics::{Metrics, MetricsOptions};

use super::*;
use crate::metrics::RequestMetrics;

#[tokio::test(start_paused = true)]
async fn failures_are_told_in_upstreams_words() {
    let help = "\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n\n\
                To learn more about this feature, consult the documentation available at:\n      \
                https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";
    let missing = || Err(ExecError::NotFound { program: "x".into() });
    let start = || {
        let source = std::io::Error::from_raw_os_error(13);
        Err(ExecError::Start { line: "secret".into(), what: "executing it".into(), source })
    };
    let late = || Err(ExecError::Deadline { line: "secret".into(), deadline: Duration::from_secs(60) });
    let signalled = || Ok(Output { exit: Exit::Signal(9), ..Output::ok("") });
    let much = || Ok(Output { truncated: true, ..Output::ok("x") });
    let quiet = "interactiveMode: Never";
    for (command, rest, ended, expected) in [
        ("tool", quiet, missing(), format!("exec: executable tool not found{help}")),
        ("tool", quiet, start(), format!("exec: executable tool not found{help}")),
        (
            "tool",
            "interactiveMode: Never, installHint: Get it.",
            missing(),
            format!("exec: executable tool not found{help}\n\nGet it."),
        ),
        ("/a/tool", quiet, missing(), "exec: fork/exec /a/tool: no such file or directory".into()),
        ("/a/tool", quiet, start(), "exec: fork/exec /a/tool: permission denied".into()),
        ("tool", quiet, Ok(Output::failed(3, "why")), "exec: executable tool failed with exit code 3".into()),
        ("tool", quiet, signalled(), "exec: executable tool failed with exit code -1".into()),
        ("tool", quiet, late(), "exec: tool took longer than 60s".into()),
        ("tool", quiet, much(), "exec: output of more than 262144 bytes".into()),
        ("tool", quiet, Ok(Output::ok("")), "decoding stdout: Object 'Kind' is missing".into()),
        ("tool", quiet, says(""), "exec plugin didn't return a token or cert/key pair".into()),
        (
            "tool",
            "interactiveMode: Always",
            token("t"),
            "exec plugin cannot support interactive mode: standard input is not a terminal".into(),
        ),
    ] {
        let bench = Bench::new(&format!("command: {command}, {rest}"), [(0, ended)]);
        assert_eq!(failure(&bench.client).await, expected, "{command} {rest}");
    }
    let bench = Bench::new(PLUGIN, [(0, says(r#""clientCertificateData":"c","clientKeyData":"k""#))]);
    let text = failure(&bench.client).await;
    assert!(text.starts_with("failed parsing client key/certificate: "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn help_is_given_ten_times_an_hour() {
    let missing = || (0, Err(ExecError::NotFound { program: "x".into() }));
    let bench = Bench::new(PLUGIN, std::iter::repeat_with(missing).take(13));
    let mut helpful = Vec::new();
    for _ in 0..12 {
        helpful.push(failure(&bench.client).await.contains("consult the documentation"));
    }
    assert_eq!(helpful, [vec![true; 10], vec![false; 2]].concat());
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(failure(&bench.client).await.contains("consult the documentation"));
}

#[tokio::test(start_paused = true)]
async fn runs_and_certificates_are_counted() {
    let pair = |start: u64, days: u64| {
        let mut params = rcgen::CertificateParams::new(vec!["me".to_owned()]).unwrap();
        let at = |time: Duration| (SystemTime::UNIX_EPOCH + time).into();
        params.not_before = at(START - Duration::from_secs(start));
        params.not_after = at(START + Duration::from_hours(24 * days));
        let key = rcgen::KeyPair::generate().unwrap();
        let text = |text: String| text.replace('\n', "\\n");
        let (cert, key) = (text(params.self_signed(&key).unwrap().pem()), text(key.serialize_pem()));
        says(&format!("\"clientCertificateData\":\"{cert}\",\"clientKeyData\":\"{key}\""))
    };
    let missing = Err(ExecError::NotFound { program: "x".into() });
    let bench = Bench::new(PLUGIN, [(0, missing), (0, pair(3000, 1)), (0, pair(0, 2)), (0, token("t"))]);
    let metrics = Metrics::new(MetricsOptions::default());
    let cx = bench.cx.clone().with_metrics(RequestMetrics::new(&metrics)).starting_by(Arc::clone(&bench.exec) as _);
    let client = bench.another(config(PLUGIN), cx);
    let shows = |line: &str| {
        let text = metrics.text();
        assert!(text.contains(&format!("{line}\n")), "{line} in\n{text}");
    };
    shows("rest_client_exec_plugin_ttl_seconds +Inf");
    assert!(ask(&client).await.is_err());
    shows(r#"rest_client_exec_plugin_call_total{call_status="plugin_not_found_error",code="1"} 1"#);
    ask(&client).await.unwrap();
    shows("rest_client_exec_plugin_ttl_seconds 86399");
    // Requests without a token are refused, so that the plugin is asked again.
    *bench.gate.refused.lock() = vec![String::new()];
    assert!(ask(&client).await.is_err());
    shows("rest_client_exec_plugin_ttl_seconds 172798");
    shows("rest_client_exec_plugin_certificate_rotation_age_bucket{le=\"600\"} 0");
    shows("rest_client_exec_plugin_certificate_rotation_age_bucket{le=\"3600\"} 1");
    assert!(ask(&client).await.is_err());
    shows("rest_client_exec_plugin_ttl_seconds +Inf");
    shows("rest_client_exec_plugin_certificate_rotation_age_count 2");
    shows(r#"rest_client_exec_plugin_call_total{call_status="no_error",code="0"} 3"#);
}
