//! What is to be done so that the plugins are registered whose sockets are there, and no others. Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::PluginInfo;
use super::find::Identity;

/// A plugin that could not be registered is tried again after this, then after twice as long, up to the second.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(122);

/// What is known of one socket.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) registered: Option<(Identity, PluginInfo)>,
    /// Something is being done about it; nothing else is begun meanwhile.
    busy: bool,
    retry: Option<Retry>,
}

/// The last attempt failed.
#[derive(Debug)]
struct Retry {
    identity: Identity,
    at: Instant,
    pause: Duration,
}

/// What is to be done about a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Register(PathBuf, Identity),
    Unregister(PathBuf),
}

/// All sockets that are there, or were.
#[derive(Debug, Default)]
pub(super) struct Sockets(BTreeMap<PathBuf, Known>);

impl Sockets {
    /// What is to be done now, and when to look again though nothing changed.
    pub(super) fn plan(&self, present: &BTreeMap<PathBuf, Identity>, now: Instant) -> (Vec<Step>, Option<Instant>) {
        let mut steps = Vec::new();
        let mut next: Option<Instant> = None;
        for (path, known) in self.0.iter().filter(|(_, known)| !known.busy) {
            let Some((identity, _)) = &known.registered else { continue };
            if present.get(path) != Some(identity) {
                steps.push(Step::Unregister(path.clone()));
            }
        }
        for (path, identity) in present {
            let known = self.0.get(path);
            if known.is_some_and(|known| known.busy || known.registered.is_some()) {
                continue;
            }
            let retry = known.and_then(|known| known.retry.as_ref()).filter(|retry| retry.identity == *identity);
            match retry.filter(|retry| retry.at > now) {
                Some(retry) => next = Some(next.map_or(retry.at, |at| at.min(retry.at))),
                None => steps.push(Step::Register(path.clone(), *identity)),
            }
        }
        (steps, next)
    }

    /// A step is being taken; the plugin that it is about, where one is registered.
    pub(super) fn begin(&mut self, path: &Path) -> Option<PluginInfo> {
        let known = self.0.entry(path.to_owned()).or_default();
        known.busy = true;
        known.registered.as_ref().map(|(_, plugin)| plugin.clone())
    }

    /// A plugin was registered, or was not.
    pub(super) fn registered(&mut self, path: &Path, identity: Identity, plugin: Option<PluginInfo>, now: Instant) {
        let known = self.0.entry(path.to_owned()).or_default();
        known.busy = false;
        let Some(plugin) = plugin else {
            let before = known.retry.take().filter(|retry| retry.identity == identity);
            let pause = before.map_or(FIRST_RETRY, |retry| (retry.pause * 2).min(LAST_RETRY));
            known.retry = Some(Retry { identity, at: now + pause, pause });
            return;
        };
        (known.registered, known.retry) = (Some((identity, plugin)), None);
    }

    /// A plugin was unregistered.
    pub(super) fn unregistered(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Forgets what neither is there nor registered.
    pub(super) fn forget_gone(&mut self, present: &BTreeMap<PathBuf, Identity>) {
        self.0.retain(|path, known| known.busy || known.registered.is_some() || present.contains_key(path));
    }

    /// The sockets of plugins that are registered.
    pub(super) fn actual(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(|(_, known)| known.registered.is_some()).map(|(path, _)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/r/a.sock";

    fn present(inode: u64) -> BTreeMap<PathBuf, Identity> {
        [(PATH.into(), Identity::numbered(inode))].into()
    }

    /// Steps, and the milliseconds until it is to be looked again; 0 where nothing waits.
    fn planned(sockets: &Sockets, present: &BTreeMap<PathBuf, Identity>, now: Instant) -> String {
        let (steps, next) = sockets.plan(present, now);
        let steps: Vec<&str> = steps
            .iter()
            .map(|step| match step {
                Step::Register(..) => "register",
                Step::Unregister(_) => "unregister",
            })
            .collect();
        format!("{} {}", steps.join(" "), next.map_or(0, |next| (next - now).as_millis()))
    }

    #[test]
    fn a_socket_is_registered_once_and_unregistered_when_it_is_another_or_gone() {
        let (mut sockets, now) = (Sockets::default(), Instant::now());
        let at = Path::new(PATH);
        assert_eq!(planned(&sockets, &present(1), now), "register 0");
        assert_eq!(sockets.begin(at), None);
        assert_eq!(planned(&sockets, &present(1), now), " 0", "one operation at a time");
        assert_eq!(planned(&sockets, &BTreeMap::new(), now), " 0", "also when it goes meanwhile");
        sockets.registered(at, Identity::numbered(1), Some(PluginInfo::default()), now);
        assert_eq!(planned(&sockets, &present(1), now), " 0");
        assert_eq!(sockets.actual().count(), 1);
        for there in [present(2), BTreeMap::new()] {
            assert_eq!(
                planned(&sockets, &there, now),
                "unregister 0",
                "nothing is registered before the other is gone"
            );
        }
        assert_eq!(sockets.begin(at), Some(PluginInfo::default()));
        sockets.unregistered(at);
        assert_eq!(planned(&sockets, &present(2), now), "register 0");
        assert_eq!(planned(&sockets, &BTreeMap::new(), now), " 0");
    }

    #[test]
    fn who_fails_waits_longer_each_time_and_a_new_socket_does_not() {
        let mut sockets = Sockets::default();
        let (at, id) = (Path::new(PATH), Identity::numbered(1));
        let mut now = Instant::now();
        for pause in [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 122_000, 122_000] {
            sockets.begin(at);
            sockets.registered(at, id, None, now);
            assert_eq!(planned(&sockets, &present(1), now), format!(" {pause}"));
            now += Duration::from_millis(pause);
            assert_eq!(planned(&sockets, &present(1), now), "register 0");
        }
        sockets.registered(at, id, None, now);
        assert_eq!(planned(&sockets, &present(2), now), "register 0", "another socket has failed at nothing");
        sockets.forget_gone(&BTreeMap::new());
        assert_eq!(planned(&sockets, &present(1), now), "register 0", "what was gone is forgotten");
    }
}
