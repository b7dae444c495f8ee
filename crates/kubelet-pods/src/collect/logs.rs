//! Log rotation: a container's file that grew too long is renamed, compressed later, and begun anew.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use node_api::cri::{CriError, Runtime};

use crate::runtime::record::ContainerRecord;

/// Rotated files looked at, a bound.
const MAX_ROTATED: usize = 1000;

/// Why a log was not rotated. The next look tries it again, whatever it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RotateError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Runtime(#[from] CriError),
    /// The thread that tidies up was lost.
    #[error(transparent)]
    Lost(#[from] tokio::task::JoinError),
}

/// Rotates the log of a running container where it is due.
///
/// # Errors
/// The file system or the runtime refuses.
pub(crate) async fn rotate(
    runtime: &dyn Runtime,
    record: &ContainerRecord,
    limit_bytes: u64,
    max_files: usize,
    now: SystemTime,
) -> Result<(), RotateError> {
    let path = PathBuf::from(&record.log_path);
    if record.log_path.is_empty() {
        return Ok(());
    }
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.len() < limit_bytes => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(runtime.reopen_container_log(&record.id).await?);
        }
        Err(error) => return Err(error.into()),
    }
    let tidied = path.clone();
    tokio::task::spawn_blocking(move || tidy(&tidied, max_files)).await??;
    let rotated = PathBuf::from(format!("{}.{}", path.display(), stamp(now)));
    std::fs::rename(&path, &rotated)?;
    if let Err(error) = runtime.reopen_container_log(&record.id).await {
        // The runtime still writes to the old file: give it its name back.
        let _ = std::fs::rename(&rotated, &path);
        return Err(error.into());
    }
    Ok(())
}

/// `YYYYMMDD-HHMMSS`, so that names sort by time.
fn stamp(now: SystemTime) -> String {
    let text = api_machinery::time::Time::from(now).to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let (date, time) = digits.split_at(digits.len().min(8));
    format!("{date}-{time}")
}

/// Removes leftovers and the oldest files, and compresses what is not compressed yet.
fn tidy(log: &Path, max_files: usize) -> io::Result<()> {
    let mut files = rotated(log)?;
    files.retain(|file| {
        let leftover = file.extension().is_some_and(|extension| extension == "tmp");
        let doubled = with_suffix(file, ".gz").exists();
        if leftover || doubled {
            let _ = std::fs::remove_file(file);
        }
        !leftover && !doubled
    });
    // The live file and the one about to be rotated come on top.
    let keep = max_files.saturating_sub(2);
    let surplus = files.len().saturating_sub(keep);
    for file in files.drain(..surplus) {
        std::fs::remove_file(file)?;
    }
    for file in files.iter().filter(|file| file.extension().is_none_or(|extension| extension != "gz")) {
        compress(file)?;
    }
    Ok(())
}

/// The rotated files of a log, oldest first.
fn rotated(log: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(directory), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str())) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{name}.");
    let mut out = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(MAX_ROTATED) {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            out.push(entry.path());
        }
    }
    out.sort();
    Ok(out)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn compress(file: &Path) -> io::Result<()> {
    let partial = with_suffix(file, ".tmp");
    let mut source = std::fs::File::open(file)?;
    let mut encoder = GzEncoder::new(std::fs::File::create(&partial)?, Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?.flush()?;
    std::fs::rename(&partial, with_suffix(file, ".gz"))?;
    std::fs::remove_file(file)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn old_files_are_compressed_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("0.log");
        for name in [
            "0.log",
            "0.log.20260101-000001.gz",
            "0.log.20260101-000002",
            "0.log.20260101-000003",
            "0.log.x.tmp",
            "1.log",
        ] {
            std::fs::write(dir.path().join(name), "text").unwrap();
        }
        tidy(&log, 4).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["0.log", "0.log.20260101-000002.gz", "0.log.20260101-000003.gz", "1.log"]);
    }

    #[test]
    fn stamps_sort_by_time() {
        assert_eq!(stamp(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)), "20260101-000000");
    }
}
