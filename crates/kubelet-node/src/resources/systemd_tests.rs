//! The client against a made-up systemd at the other end of a socket, and against the machine's where it has one.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::TaskGroup;
use parking_lot::Mutex;
use zbus::connection::Builder;

use super::*;
use crate::resources::fake_units::contract;

/// Units with the numbers that were set on them.
type Table = Arc<Mutex<BTreeMap<String, BTreeMap<String, u64>>>>;

/// A systemd that does no more than the calls say, and ends jobs as it is told to.
struct Other {
    connection: Connection,
    units: Table,
    result: Arc<Mutex<&'static str>>,
    jobs: u32,
}

fn numbers(properties: Vec<(String, OwnedVariant)>) -> BTreeMap<String, u64> {
    properties.into_iter().filter_map(|(name, value)| Some((name, u64::try_from(value).ok()?))).collect()
}

impl Other {
    async fn serve(mut self) {
        let mut calls = MessageStream::from(&self.connection);
        while let Some(Ok(call)) = calls.next().await {
            if call.message_type() == Type::MethodCall {
                self.answer(&call).await.unwrap();
            }
        }
    }

    async fn answer(&mut self, call: &Message) -> zbus::Result<()> {
        let header = call.header();
        let body = call.body();
        match header.member().map(|member| member.as_str()) {
            Some("Get") => self.connection.reply(&header, &Variant::from("v252.39-1~deb12u1")).await,
            Some("Subscribe") => self.connection.reply(&header, &()).await,
            Some("StartTransientUnit") => {
                type Auxiliary = Vec<(String, Vec<(String, OwnedVariant)>)>;
                let (unit, mode, properties, _): (String, String, Vec<(String, OwnedVariant)>, Auxiliary) =
                    body.deserialize()?;
                assert_eq!(mode, "replace");
                if self.units.lock().contains_key(&unit) {
                    return self.connection.reply_error(&header, UNIT_EXISTS, &"it exists").await;
                }
                self.units.lock().insert(unit.clone(), numbers(properties));
                self.job(call, &unit).await
            }
            Some("StartUnit") => {
                let (unit, _): (String, String) = body.deserialize()?;
                self.job(call, &unit).await
            }
            Some("SetUnitProperties") => {
                let (unit, runtime, properties): (String, bool, Vec<(String, OwnedVariant)>) = body.deserialize()?;
                assert!(runtime);
                let known = self.units.lock().get_mut(&unit).map(|found| found.extend(numbers(properties)));
                match known {
                    Some(()) => self.connection.reply(&header, &()).await,
                    None => self.connection.reply_error(&header, NO_SUCH_UNIT, &"not found").await,
                }
            }
            Some("StopUnit") => {
                let (unit, _): (String, String) = body.deserialize()?;
                let known = self.units.lock().remove(&unit).is_some();
                if !known {
                    return self.connection.reply_error(&header, NO_SUCH_UNIT, &"not loaded").await;
                }
                self.job(call, &unit).await
            }
            other => panic!("{other:?}"),
        }
    }

    /// Answers with a job, tells of the end of another one, and then of its own.
    async fn job(&mut self, call: &Message, unit: &str) -> zbus::Result<()> {
        self.jobs += 2;
        let path = |number: u32| OwnedObjectPath::try_from(format!("{OBJECT}/job/{number}")).unwrap();
        self.connection.reply(&call.header(), &path(self.jobs)).await?;
        let own = *self.result.lock();
        for (number, result) in [(self.jobs - 1, "failed"), (self.jobs, own)] {
            let body = (number, path(number), unit, result);
            self.connection.emit_signal(None::<&str>, OBJECT, MANAGER, "JobRemoved", &body).await?;
        }
        Ok(())
    }
}

/// A client, the other's units, and how its jobs end.
async fn pair(tasks: &TaskGroup) -> (Systemd, Table, Arc<Mutex<&'static str>>) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let guid = zbus::Guid::generate();
    let theirs = Builder::unix_stream(theirs).server(guid).p2p().build();
    let ours = Builder::unix_stream(ours).p2p().build();
    let (ours, theirs) = tokio::join!(ours, theirs);
    let (units, result) = (Table::default(), Arc::new(Mutex::new(DONE)));
    let other = Other { connection: theirs.unwrap(), units: units.clone(), result: result.clone(), jobs: 0 };
    tasks.spawn_cancellable("systemd", other.serve());
    (Systemd::over(ours.unwrap()).await.unwrap(), units, result)
}

#[tokio::test]
async fn the_client_is_a_systemd() {
    let tasks = TaskGroup::new("test");
    let (systemd, units, _) = pair(&tasks).await;
    assert_eq!(systemd.version(), 252);
    let read = async |unit: &str, name: &str| units.lock().get(unit)?.get(name).copied();
    contract(&systemd, "test.slice", read).await;
    tasks.cancel();
}

#[tokio::test]
async fn jobs_that_fail_are_told_of() {
    let tasks = TaskGroup::new("test");
    let (systemd, _, result) = pair(&tasks).await;
    *result.lock() = "timeout";
    let error = systemd.start("test.slice", Vec::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "the job to start test.slice ended as \"timeout\"");
    let error = systemd.set("other.slice", Vec::new()).await.unwrap_err();
    assert!(error.to_string().starts_with("systemd refuses to set the properties of other.slice: "), "{error}");
    tasks.cancel();
}

#[tokio::test]
async fn a_bus_without_systemd_is_an_error() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(theirs);
    let error = Builder::unix_stream(ours).p2p().build().await.map(drop).map_err(unreachable).unwrap_err();
    assert!(error.to_string().starts_with("systemd cannot be reached over D-Bus: "), "{error}");
}

#[test]
fn versions_are_read() {
    for (text, expected) in [("252.39-1~deb12u1", 252), ("v257.9-1", 257), ("", 0), ("none", 0)] {
        assert_eq!(parse_version(text), expected, "{text}");
    }
}

/// Run as root where systemd is process 1, such as in a container or a virtual machine made for it.
#[tokio::test]
async fn the_machines_systemd_is_one() {
    if std::fs::read_to_string("/proc/1/comm").is_ok_and(|name| name.trim() != "systemd") {
        println!("skipped: process 1 is not systemd");
        return;
    }
    let systemd = Systemd::connect().await.unwrap();
    let connection = systemd.connection().await.unwrap();
    let read = async |unit: &str, name: &str| {
        let path: OwnedObjectPath = connection
            .call_method(Some(SERVICE), OBJECT, Some(MANAGER), "LoadUnit", &(unit,))
            .await
            .ok()?
            .body()
            .deserialize()
            .ok()?;
        let asked = ("org.freedesktop.systemd1.Slice", name);
        let answer = connection.call_method(Some(SERVICE), path, Some(PROPERTIES), "Get", &asked).await.ok()?;
        let value: OwnedVariant = answer.body().deserialize().ok()?;
        u64::try_from(value).ok()
    };
    contract(&systemd, "coxswaintest.slice", read).await;
}
