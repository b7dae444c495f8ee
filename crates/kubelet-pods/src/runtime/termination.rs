//! Termination messages: what a container wrote to its termination log, or the end of its output.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::labels;
use super::record::ContainerRecord;

/// The most that is read of a termination log.
const LOG_LIMIT_BYTES: u64 = 4096;
/// The most that is taken of a container's output instead.
const FALLBACK_LIMIT_BYTES: usize = 2048;
const FALLBACK_LINES: usize = 80;
/// What is read of the output file to find that many lines: prefixes and partial lines included.
const FALLBACK_READ_BYTES: u64 = 64 * 1024;

/// The last words of an exited container; empty where it has none.
pub async fn last_words(record: &ContainerRecord) -> String {
    let path = record.annotation(labels::TERMINATION_PATH);
    let host = record.mounts.iter().find(|mount| !path.is_empty() && mount.container_path == path);
    let mut message = String::new();
    if let Some(mount) = host {
        match tail(Path::new(&mount.host_path), LOG_LIMIT_BYTES).await {
            Ok(bytes) => message = String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return format!("Error on reading termination log {}: {error}", mount.host_path),
        }
    }
    let fallback = record.annotation(labels::TERMINATION_POLICY) == "FallbackToLogsOnError";
    if !fallback || !message.is_empty() || record.exit_code == 0 || record.reason == "ContainerCannotRun" {
        return message;
    }
    match tail(Path::new(&record.log_path), FALLBACK_READ_BYTES).await {
        Ok(bytes) => end_of_output(&String::from_utf8_lossy(&bytes)),
        Err(error) => format!("Error on reading termination message from logs: {error}"),
    }
}

/// The last `limit` bytes of a file.
async fn tail(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = tokio::fs::File::open(path).await?;
    let length = file.metadata().await?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit))).await?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// The text of the last lines of a log in CRI's format: `time stream tags text`.
fn end_of_output(log: &str) -> String {
    let mut text = String::new();
    for line in log.lines() {
        let mut parts = line.splitn(4, ' ');
        let (Some(_time), Some("stdout" | "stderr"), Some(tags)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        text.push_str(parts.next().unwrap_or_default());
        if tags.split(':').next() == Some("F") {
            text.push('\n');
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let kept = lines.get(lines.len().saturating_sub(FALLBACK_LINES)..).unwrap_or_default().concat();
    let mut start = kept.len().saturating_sub(FALLBACK_LIMIT_BYTES);
    while !kept.is_char_boundary(start) {
        start += 1;
    }
    kept.get(start..).unwrap_or_default().to_owned()
}

/// Makes an empty termination log for a new instance of a container; returns its path on the host.
pub fn prepare(pod_dir: &Path, container: &str, suffix: u32) -> io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = pod_dir.join("containers").join(container);
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("{suffix:08x}"));
    let file = std::fs::File::create(&path)?;
    // The creation mask may have taken bits away; any user in the container must be able to write.
    file.set_permissions(std::fs::Permissions::from_mode(0o666))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_stripped_and_joined() {
        let log =
            "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stderr P tw\n2026-01-01T00:00:00Z stderr F o\n";
        assert_eq!(end_of_output(log), "one\ntwo\n");
        let many: String = (0..100).map(|n| format!("t stdout F line {n}\n")).collect();
        assert!(end_of_output(&many).starts_with("line 20\n"));
        let long = format!("t stdout F {}\n", "é".repeat(2000));
        assert!(end_of_output(&long).len() <= FALLBACK_LIMIT_BYTES);
    }

    #[tokio::test]
    async fn a_log_is_read_from_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = prepare(dir.path(), "c", 7).unwrap();
        assert!(path.ends_with("containers/c/00000007"));
        std::fs::write(&path, "x".repeat(5000) + "end").unwrap();
        let bytes = tail(&path, LOG_LIMIT_BYTES).await.unwrap();
        assert_eq!(bytes.len(), 4096);
        assert!(bytes.ends_with(b"end"));
    }
}
