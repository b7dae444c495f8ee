//! Which devices are well, as their drivers say, and as an earlier kubelet heard it. See <https://kep.k8s.io/4680>.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use api_types::core_v1::constants::resource_health_status::{HEALTHY, UNHEALTHY, UNKNOWN};
use base::SharedClock;
use node_api::dra::health::{HealthStatus, NodeWatchResourcesResponse};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

const FILE: &str = "dra_health_state";
const MODE: u32 = 0o600;
/// The largest file that is read, and the devices that are known at most.
const MAX_BYTES: u64 = 64 << 20;
const MAX_DEVICES: usize = 100_000;
/// A message is cut off after so many characters.
const MAX_MESSAGE: usize = 1024;
/// After so long without word the health of a device is unknown, where its driver does not say after how long.
const DEFAULT_LIMIT: Duration = Duration::from_secs(30);

/// A device: driver, pool and name.
pub(super) type DeviceKey = (String, String, String);

/// How a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    /// A value of `ResourceHealth.health`.
    pub(super) state: &'static str,
    pub(super) message: String,
}

impl Health {
    fn unknown() -> Self {
        Self { state: UNKNOWN, message: String::new() }
    }
}

/// What was heard of a device last.
#[derive(Debug, Clone, PartialEq)]
struct Heard {
    health: Health,
    at: SystemTime,
    limit: Duration,
    /// Pods know that nothing has been heard since.
    expired: bool,
}

impl Heard {
    fn ends(&self) -> SystemTime {
        self.at + self.limit
    }
}

#[derive(Default)]
struct State {
    heard: BTreeMap<DeviceKey, Heard>,
    /// Devices that are otherwise than pods know.
    changed: BTreeSet<DeviceKey>,
}

/// The health of the devices of all drivers.
pub struct Healths {
    state: Mutex<State>,
    changed: Notify,
    file: PathBuf,
    clock: SharedClock,
}

impl Healths {
    /// What an earlier kubelet heard; what it wrote down is nothing to go by where it cannot be read.
    #[must_use]
    pub fn new(root: &Path, clock: SharedClock) -> Self {
        let file = root.join(FILE);
        let heard = load(&file).unwrap_or_else(|error| {
            tracing::error!(path = %file.display(), %error, "The health of devices cannot be read");
            BTreeMap::new()
        });
        Self { state: Mutex::new(State { heard, changed: BTreeSet::new() }), changed: Notify::new(), file, clock }
    }

    /// A driver tells how devices are.
    pub(super) fn hear(&self, driver: &str, told: NodeWatchResourcesResponse) {
        let now = self.clock.wall();
        let mut state = self.state.lock();
        let mut news = false;
        for device in told.devices {
            let (health, limit) = (device.health(), u64::try_from(device.health_check_timeout_seconds));
            let Some(id) = device.device else { continue };
            let key = (driver.to_owned(), id.pool_name, id.device_name);
            let health = Health { state: name_of(health), message: device.message.chars().take(MAX_MESSAGE).collect() };
            let before = state.heard.get(&key);
            if before.is_none() && state.heard.len() >= MAX_DEVICES {
                continue;
            }
            if before.is_none_or(|before| before.health != health || before.expired) {
                state.changed.insert(key.clone());
                news = true;
            }
            let limit = limit.ok().filter(|seconds| *seconds > 0).map_or(DEFAULT_LIMIT, Duration::from_secs);
            state.heard.insert(key, Heard { health, at: now, limit, expired: false });
        }
        if news {
            self.save(&state);
            self.changed.notify_one();
        }
    }

    /// A driver is gone, and nobody knows how its devices are.
    pub(super) fn forget(&self, driver: &str) {
        let mut state = self.state.lock();
        let (gone, kept) = std::mem::take(&mut state.heard).into_iter().partition(|((own, ..), _)| own == driver);
        state.heard = kept;
        let gone: BTreeMap<DeviceKey, Heard> = gone;
        if gone.is_empty() {
            return;
        }
        state.changed.extend(gone.into_keys());
        self.save(&state);
        self.changed.notify_one();
    }

    /// How a device is.
    pub(super) fn of(&self, key: &DeviceKey) -> Health {
        let state = self.state.lock();
        let heard = state.heard.get(key).filter(|heard| heard.ends() >= self.clock.wall());
        heard.map_or_else(Health::unknown, |heard| heard.health.clone())
    }

    /// Waits until devices are otherwise than before: their drivers say so, or say nothing for too long.
    pub(super) async fn changes(&self) -> BTreeSet<DeviceKey> {
        loop {
            let (changed, next) = self.take_changes();
            if !changed.is_empty() {
                return changed;
            }
            let silence = async {
                match next {
                    // A moment more, so that the limit is over then.
                    Some(left) => tokio::time::sleep(left + Duration::from_millis(1)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = silence => {}
            }
        }
    }

    /// What has changed, and how long until the next device has been silent for too long.
    fn take_changes(&self) -> (BTreeSet<DeviceKey>, Option<Duration>) {
        let now = self.clock.wall();
        let mut state = self.state.lock();
        let mut changed = std::mem::take(&mut state.changed);
        for (key, heard) in state.heard.iter_mut().filter(|(_, heard)| !heard.expired && heard.ends() < now) {
            heard.expired = true;
            changed.insert(key.clone());
        }
        let pending = state.heard.values().filter(|heard| !heard.expired);
        let next = pending.map(|heard| heard.ends().duration_since(now).unwrap_or_default()).min();
        (changed, next)
    }

    fn save(&self, state: &State) {
        let saved = sys::fs::write_atomic(&self.file, encode(&state.heard).as_bytes(), MODE);
        if let Err(error) = saved {
            tracing::error!(path = %self.file.display(), %error, "The health of devices cannot be saved");
        }
    }
}

fn name_of(health: HealthStatus) -> &'static str {
    match health {
        HealthStatus::Healthy => HEALTHY,
        HealthStatus::Unhealthy => UNHEALTHY,
        HealthStatus::Unknown => UNKNOWN,
    }
}

fn encode(heard: &BTreeMap<DeviceKey, Heard>) -> String {
    let mut drivers = Map::new();
    for ((driver, pool, device), heard) in heard {
        let of = drivers.entry(driver.clone()).or_insert_with(|| json!({"Devices": {}}));
        of["Devices"][format!("{pool}/{device}")] = json!({
            "PoolName": pool, "DeviceName": device, "Health": heard.health.state, "Message": heard.health.message,
            "LastUpdated": Time::from(heard.at).to_string(), "HealthCheckTimeout": nanos(heard.limit),
        });
    }
    Value::Object(drivers).to_string()
}

fn nanos(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)
}

fn load(file: &Path) -> std::io::Result<BTreeMap<DeviceKey, Heard>> {
    use std::io::Read as _;
    let mut text = String::new();
    match std::fs::File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    }
    let drivers: Map<String, Value> = serde_json::from_str(&text)?;
    let of = |(driver, state): (&String, &Value)| {
        let devices = state["Devices"].as_object().into_iter().flatten();
        devices.filter_map(|(_, device)| decode(driver, device)).collect::<Vec<_>>()
    };
    Ok(drivers.iter().flat_map(of).take(MAX_DEVICES).collect())
}

fn decode(driver: &str, device: &Value) -> Option<(DeviceKey, Heard)> {
    let text = |name: &str| device[name].as_str();
    let key = (driver.to_owned(), text("PoolName")?.to_owned(), text("DeviceName")?.to_owned());
    let state = [HEALTHY, UNHEALTHY, UNKNOWN].into_iter().find(|state| text("Health") == Some(state))?;
    let health = Health { state, message: text("Message").unwrap_or_default().to_owned() };
    let at = SystemTime::from(Time::parse(text("LastUpdated")?).ok()?);
    let limit = device["HealthCheckTimeout"].as_u64().map_or(DEFAULT_LIMIT, Duration::from_nanos);
    Some((key, Heard { health, at, limit, expired: false }))
}

#[cfg(test)]
mod tests {
    use base::TokioClock;
    use node_api::dra::health::{DeviceHealth, DeviceIdentifier};

    use super::*;

    fn told(health: HealthStatus, message: &str, limit: i64) -> NodeWatchResourcesResponse {
        let device = Some(DeviceIdentifier { pool_name: "pool".into(), device_name: "gpu-0".into() });
        let health = DeviceHealth {
            device,
            health: health.into(),
            message: message.into(),
            health_check_timeout_seconds: limit,
            last_updated_time: 0,
        };
        NodeWatchResourcesResponse { devices: vec![health] }
    }

    #[tokio::test(start_paused = true)]
    async fn what_drivers_say_counts_until_they_are_silent_for_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let clock = TokioClock::shared();
        let healths = Healths::new(dir.path(), clock.clone());
        let key: DeviceKey = ("driver".into(), "pool".into(), "gpu-0".into());
        let state = |healths: &Healths| healths.of(&key).state;
        assert_eq!(state(&healths), UNKNOWN);
        healths.hear("driver", told(HealthStatus::Healthy, "", 0));
        assert_eq!(healths.changes().await, [key.clone()].into());
        assert_eq!(state(&healths), HEALTHY);
        tokio::time::sleep(Duration::from_secs(20)).await;
        healths.hear("driver", told(HealthStatus::Healthy, "", 0));
        let confirmed = tokio::time::timeout(Duration::from_secs(25), healths.changes()).await;
        assert!(confirmed.is_err(), "it is as it was, and was heard of 25 seconds ago");
        assert_eq!(state(&healths), HEALTHY);
        let silent = tokio::time::timeout(Duration::from_secs(10), healths.changes()).await;
        assert_eq!((silent.unwrap().len(), state(&healths)), (1, UNKNOWN));

        healths.hear("driver", told(HealthStatus::Unhealthy, "too hot", 600));
        assert_eq!(healths.changes().await.len(), 1);
        let again = Healths::new(dir.path(), clock.clone());
        let hot = Health { state: UNHEALTHY, message: "too hot".into() };
        assert_eq!((again.of(&key), healths.of(&key)), (hot.clone(), hot), "the next kubelet knows");
        healths.forget("other");
        assert_eq!(state(&healths), UNHEALTHY);
        healths.forget("driver");
        assert_eq!((healths.changes().await.len(), state(&healths)), (1, UNKNOWN));
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert_eq!(Healths::new(dir.path(), clock).of(&key), Health::unknown(), "nothing to go by");
    }
}
