//! The configuration file while the proxy runs: when it changes, a new process reads it.

use std::path::Path;

use futures_util::StreamExt as _;
use inotify::{EventMask, EventStream, Inotify, WatchMask};

/// Room for some events; the file's name is not among what they say.
const EVENT_BUFFER_BYTES: usize = 1024;

/// Ends when the file is written to or moved away. A file that another one is moved over does not count, as upstream:
/// then the path is another file's, which nobody watches. Never ends where no file is named or it cannot be watched.
pub(crate) async fn changed(path: &Path) {
    if let Some(mut events) = watch(path) {
        while let Some(event) = events.next().await {
            if event.is_ok_and(|event| event.mask.intersects(EventMask::MODIFY | EventMask::MOVE_SELF)) {
                return;
            }
        }
    }
    std::future::pending().await
}

fn watch(path: &Path) -> Option<EventStream<Vec<u8>>> {
    if path.as_os_str().is_empty() {
        return None;
    }
    let watched = Inotify::init().and_then(|inotify| {
        inotify.watches().add(path, WatchMask::MODIFY | WatchMask::MOVE_SELF)?;
        inotify.into_event_stream(vec![0; EVENT_BUFFER_BYTES])
    });
    watched
        .inspect_err(|error| tracing::error!(path = %path.display(), %error, "Watching the configuration failed"))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// Whether what is done to the file ends the wait for a change of it.
    async fn is_seen(done: impl FnOnce(&Path)) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.yaml");
        fs::write(&file, "mode: nftables\n").unwrap();
        let change = changed(&file);
        tokio::pin!(change);
        let early = tokio::time::timeout(Duration::from_millis(20), &mut change).await;
        assert!(early.is_err(), "nothing has changed yet");
        done(&file);
        tokio::time::timeout(Duration::from_millis(200), change).await.is_ok()
    }

    #[tokio::test]
    async fn writes_and_moves_are_changes() {
        assert!(is_seen(|file| fs::write(file, "mode: iptables\n").unwrap()).await);
        assert!(is_seen(|file| fs::rename(file, file.with_extension("old")).unwrap()).await);
        assert!(!is_seen(|file| drop(fs::read(file).unwrap())).await);
        assert!(!is_seen(|file| fs::remove_file(file).unwrap()).await);
        let replace = |file: &Path| {
            fs::write(file.with_extension("new"), "mode: iptables\n").unwrap();
            fs::rename(file.with_extension("new"), file).unwrap();
        };
        assert!(!is_seen(replace).await);
    }
}
