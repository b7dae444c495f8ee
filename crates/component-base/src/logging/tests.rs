//! Whole lines, as they come out.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base::{SharedClock, StandingClock};
use parking_lot::Mutex;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::flags::{FlagSet, LOGS};

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// 2026-02-03T04:05:06.007008Z.
fn clock() -> SharedClock {
    Arc::new(StandingClock(SystemTime::UNIX_EPOCH + Duration::from_micros(1_770_091_506_007_008)))
}

fn logged(format: Format, verbosity: Verbosity, work: impl FnOnce()) -> String {
    let output = Output::default();
    let writer = LogWriter::start(output.clone()).unwrap();
    let layer = LogLayer::new(format, Arc::new(verbosity), writer.clone(), clock());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
    writer.flush();
    let text = String::from_utf8(output.0.lock().clone()).unwrap();
    text.replace(&format!("{:7}", std::process::id()), "    pid")
}

/// Lines move; tests should not break for that.
fn without_line_numbers(text: &str) -> String {
    let parts: Vec<&str> = text.split("tests.rs:").collect();
    parts
        .iter()
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join("tests.rs:N")
}

#[test]
fn text_lines_are_klogs() {
    let text = logged(Format::Text, Verbosity::new(0, vec![]), || {
        let _span = tracing::info_span!("request", audit_id = "a1", code = 1).entered();
        tracing::info!(code = 200, ok = true, path = "/a\"b", "HTTP");
        tracing::warn!("careful");
        tracing::error!(error = %std::io::Error::other("broken"), secret = %Redacted::new("x"), lines = "a\nb", "failed");
        tracing::debug!("not shown");
    });
    assert_eq!(
        without_line_numbers(&text),
        "I0203 04:05:06.007008     pid tests.rs:N] \"HTTP\" code=200 ok=true path=\"/a\\\"b\" audit_id=\"a1\"\n\
         W0203 04:05:06.007008     pid tests.rs:N] \"careful\" audit_id=\"a1\" code=1\n\
         E0203 04:05:06.007008     pid tests.rs:N] \"failed\" err=\"broken\" secret=\"--- REDACTED ---\" lines=<\n\
         \ta\n\tb\n > audit_id=\"a1\" code=1\n"
    );
}

#[test]
fn json_lines_are_upstreams() {
    let text = logged(Format::Json, Verbosity::new(2, vec![]), || {
        tracing::info!(v = 2, count = 3, name = "a\"b", "hello");
        tracing::error!("failed");
    });
    assert_eq!(
        without_line_numbers(&text),
        "{\"ts\":1770091506007.008,\"caller\":\"tests.rs:N\",\"msg\":\"hello\",\"v\":2,\"count\":3,\"name\":\"a\\\"b\"}\n\
         {\"ts\":1770091506007.008,\"caller\":\"tests.rs:N\",\"msg\":\"failed\"}\n"
    );
}

#[test]
fn verbosity_selects() {
    let shown = |verbosity| {
        let text = logged(Format::Text, verbosity, || {
            tracing::info!("info");
            tracing::info!(v = 3, "three");
            tracing::debug!("debug");
            tracing::trace!("trace");
            tracing::debug!(target: "h2::proto", "library");
            tracing::error!(v = 9, "error");
        });
        text.lines().filter_map(|line| line.split('"').nth(1)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(Verbosity::new(0, vec![])), "info error");
    assert_eq!(shown(Verbosity::new(3, vec![])), "info three error");
    assert_eq!(shown(Verbosity::new(4, vec![])), "info three debug error");
    assert_eq!(shown(Verbosity::new(6, vec![])), "info three debug trace error");
    assert_eq!(shown(Verbosity::new(8, vec![])), "info three debug trace library error");
    assert_eq!(shown(Verbosity::new(0, vec![("tes*".into(), 4)])), "info three debug error");
    assert_eq!(shown(Verbosity::new(4, vec![("other".into(), 0), ("tests".into(), 3)])), "info three error");
}

/// Blocks until it is let go.
struct Stuck(Arc<Mutex<()>>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        drop(self.0.lock());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocked_output_drops_lines_and_shows_in_health() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock();
    let writer = LogWriter::start(Stuck(Arc::clone(&gate))).unwrap();
    for _ in 0..QUEUE_LINES * 3 {
        writer.send(writer::Stream::Error, "line\n".to_owned());
    }
    assert!(writer.dropped() > 0);
    let start = tokio::time::Instant::now();
    assert_eq!(writer.check(start), Ok(()));
    assert_eq!(writer.check(start + Duration::from_secs(60)), Ok(()));
    assert_eq!(writer.check(start + Duration::from_secs(120)), Err("logging blocked".to_owned()));
    drop(held);
}

#[test]
fn a_healthy_output_keeps_passing() {
    let writer = LogWriter::start(Output::default()).unwrap();
    let mut now = tokio::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(writer.check(now), Ok(()));
        writer.flush();
        now += Duration::from_secs(300);
    }
}

/// What comes out where, with so much of what is for information kept back.
fn split(format: Format, bytes: usize, longest: Duration, work: impl FnOnce(&LogWriter, &Output)) -> [String; 2] {
    let (error, info) = (Output::default(), Output::default());
    let writer = LogWriter::start_split(error.clone(), info.clone(), Buffering { bytes, longest }).unwrap();
    let layer = LogLayer::new(format, Arc::new(Verbosity::new(4, vec![])), writer.clone(), clock());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || work(&writer, &info));
    writer.flush();
    [error, info].map(|output| {
        let text = String::from_utf8(output.0.lock().clone()).unwrap();
        let names = ["careful", "failed", "hello", "detail"];
        text.lines().flat_map(|line| names.into_iter().filter(|name| line.contains(name))).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn what_is_for_information_may_go_elsewhere() {
    let all = |_: &LogWriter, _: &Output| {
        tracing::info!("hello");
        tracing::warn!("careful");
        tracing::debug!("detail");
        tracing::error!("failed");
    };
    for (format, expected) in
        [(Format::Text, ["careful failed", "hello detail"]), (Format::Json, ["failed", "hello careful detail"])]
    {
        assert_eq!(split(format, 0, Duration::ZERO, all), expected, "{format:?}");
    }
}

#[test]
fn what_is_for_information_may_be_kept_back() {
    let day = Duration::from_secs(86400);
    let is_out = |output: &Output| !output.0.lock().is_empty();
    let seen = |bytes, longest, lines| {
        let mut seen = [false; 2];
        split(Format::Text, bytes, longest, |writer, info| {
            (0..lines).for_each(|_| tracing::info!("hello"));
            // Errors are written at once, and all that came before has been looked at then.
            for _ in 0..200 {
                writer.check(tokio::time::Instant::now()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                if is_out(info) {
                    break;
                }
            }
            seen[0] = is_out(info);
            writer.flush();
            seen[1] = is_out(info);
        });
        seen
    };
    assert_eq!(seen(1 << 20, day, 3), [false, true], "until somebody wants all");
    assert_eq!(seen(100, day, 3), [true, true], "until there is too much");
    assert_eq!(seen(1 << 20, Duration::from_millis(5), 3), [true, true], "until it has been too long");
}

#[test]
fn flags_are_checked() {
    const SETS: &[FlagSet] = &[LOGS];
    let read = |arguments: &[&str], gates: &Gates| {
        let options = crate::flags::parse(SETS, arguments.iter().map(|text| (*text).to_owned())).unwrap();
        let mut errors = Errors::new();
        let read = LogOptions::from_options(&options, gates, &mut errors);
        errors.into_result().map(|()| read).map_err(|error| error.problems().to_vec())
    };
    let problems = |arguments: &[&str]| read(arguments, &Gates::default()).map_or_else(|all| all.len(), |_| 0);
    assert_eq!(problems(&[]), 0);
    assert_eq!(problems(&["--vmodule=a=1"]), 0);
    assert_eq!(problems(&["--vmodule=a=1", "--logging-format=json"]), 1);
    assert_eq!(problems(&["--vmodule=a", "--log-text-info-buffer-size=1Mi", "--log-json-split-stream"]), 3);
    assert_eq!(problems(&["--log-text-info-buffer-size=much"]), 1);
    let (alpha, no_beta) = (Gates::default().with(ALPHA, true), Gates::default().with(BETA, false));
    let split = ["--log-text-split-stream", "--log-text-info-buffer-size=1Ki", "--log-flush-frequency=2s"];
    let refused = read(&split, &Gates::default()).unwrap_err();
    assert_eq!(refused[0], "options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled");
    let kept = Buffering { bytes: 1024, longest: Duration::from_secs(2) };
    assert_eq!(read(&split, &alpha).unwrap().split, Some(kept));
    assert_eq!(
        read(&["--logging-format=json", split[0], split[1]], &alpha).unwrap().split,
        None,
        "it is of the other format"
    );
    let json = "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature";
    assert_eq!(read(&["--logging-format=json"], &no_beta).unwrap_err(), [json]);
    assert!(read(&[], &no_beta).is_ok());
}
