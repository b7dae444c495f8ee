//! systemd over D-Bus.
//!
//! See <https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.systemd1.html>. Calls that begin a job
//! are over when the job is, which a signal tells; the signal is listened for before the call is made.

use std::num::NonZeroUsize;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use zbus::message::Type;
use zbus::{Connection, MatchRule, Message, MessageStream, OwnedObjectPath, OwnedVariant, Variant};

use super::units::{Property, Started, UnitError, Units, Value};

const SERVICE: &str = "org.freedesktop.systemd1";
const OBJECT: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const UNIT_EXISTS: &str = "org.freedesktop.systemd1.UnitExists";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
/// Jobs that conflict with an older one take its place.
const MODE: &str = "replace";
/// What a job ends as when all is well.
const DONE: &str = "done";
/// How long systemd may take to answer, and to finish a job.
const CALL_LIMIT: Duration = Duration::from_secs(25);
const JOB_LIMIT: Duration = Duration::from_secs(30);
/// Signals that may wait to be looked at; the connection is read no further while they are this many.
const SIGNAL_QUEUE: NonZeroUsize = NonZeroUsize::new(1024).expect("invariant: not zero");

/// The machine's systemd. A connection that broke is made anew at the next call.
pub struct Systemd {
    version: u32,
    connection: tokio::sync::Mutex<Connection>,
}

impl Systemd {
    /// Connects over the system's bus (`DBUS_SYSTEM_BUS_ADDRESS` names another).
    ///
    /// # Errors
    /// There is no bus, or no systemd on it.
    pub async fn connect() -> Result<Self, UnitError> {
        Self::over(connect().await.map_err(unreachable)?).await
    }

    async fn over(connection: Connection) -> Result<Self, UnitError> {
        let version = version(&connection).await.map_err(unreachable)?;
        subscribe(&connection).await.map_err(unreachable)?;
        Ok(Self { version, connection: tokio::sync::Mutex::new(connection) })
    }

    async fn connection(&self) -> Result<Connection, UnitError> {
        let mut connection = self.connection.lock().await;
        if connection.is_closed() {
            *connection = connect().await.map_err(unreachable)?;
            subscribe(&connection).await.map_err(unreachable)?;
        }
        Ok(connection.clone())
    }
}

#[async_trait]
impl Units for Systemd {
    fn version(&self) -> u32 {
        self.version
    }

    async fn start(&self, unit: &str, properties: Vec<Property>) -> Result<Started, UnitError> {
        const ACTION: &str = "start";
        let connection = self.connection().await?;
        let ended = ends_of_jobs(&connection).await.map_err(|error| refused(ACTION, unit, error))?;
        let auxiliary: Vec<(&str, Vec<(&str, Variant<'_>)>)> = Vec::new();
        let body = (unit, MODE, variants(properties), auxiliary);
        let answer = connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "StartTransientUnit", &body).await;
        match answer {
            Ok(answer) => wait(ended, &answer, ACTION, unit).await.map(|()| Started::Now),
            Err(error) if is(&error, UNIT_EXISTS) => {
                // It may only have a file, such as an administrator's drop-in, and not run.
                let answer =
                    connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "StartUnit", &(unit, MODE)).await;
                let begun = answer.map_err(|error| refused(ACTION, unit, error))?;
                wait(ended, &begun, ACTION, unit).await.map(|()| Started::Before)
            }
            Err(error) => Err(refused(ACTION, unit, error)),
        }
    }

    async fn set(&self, unit: &str, properties: Vec<Property>) -> Result<(), UnitError> {
        let connection = self.connection().await?;
        // Until the machine is started anew: what is written for longer outlives the pod.
        let body = (unit, true, variants(properties));
        let answer = connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "SetUnitProperties", &body).await;
        answer.map(drop).map_err(|error| refused("set the properties of", unit, error))
    }

    async fn stop(&self, unit: &str) -> Result<(), UnitError> {
        const ACTION: &str = "stop";
        let connection = self.connection().await?;
        let ended = ends_of_jobs(&connection).await.map_err(|error| refused(ACTION, unit, error))?;
        let answer = connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "StopUnit", &(unit, MODE)).await;
        match answer {
            Ok(answer) => wait(ended, &answer, ACTION, unit).await,
            Err(error) if is(&error, NO_SUCH_UNIT) => Ok(()),
            Err(error) => Err(refused(ACTION, unit, error)),
        }
    }
}

async fn connect() -> zbus::Result<Connection> {
    zbus::connection::Builder::system().method_timeout(CALL_LIMIT).build().await
}

/// systemd tells of jobs only where somebody asked for it.
async fn subscribe(connection: &Connection) -> zbus::Result<()> {
    connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "Subscribe", &()).await.map(drop)
}

async fn version(connection: &Connection) -> zbus::Result<u32> {
    let asked = (MANAGER, "Version");
    let answer = connection.call_method(Some(SERVICE), OBJECT, Some(PROPERTIES), "Get", &asked).await?;
    let value: OwnedVariant = answer.body().deserialize()?;
    let text = String::try_from(value)?;
    Ok(parse_version(&text))
}

/// The number that a version such as `v252.39-1~deb12u1` begins with; 0 where there is none.
fn parse_version(text: &str) -> u32 {
    let digits: String = text.trim_start_matches('v').chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_default()
}

/// The signals that tell of the ends of jobs, from now on.
async fn ends_of_jobs(connection: &Connection) -> zbus::Result<MessageStream> {
    let rule = MatchRule::builder().msg_type(Type::Signal).interface(MANAGER).member("JobRemoved").path(OBJECT);
    // Anybody on the bus may send a signal of this name.
    let rule = if connection.is_bus() { rule.sender(SERVICE) } else { rule };
    MessageStream::for_match_rule(rule.build()?, connection, Some(SIGNAL_QUEUE)).await
}

/// Waits until the job that a call began is over.
async fn wait(mut ended: MessageStream, begun: &Message, action: &'static str, unit: &str) -> Result<(), UnitError> {
    let job: OwnedObjectPath = begun.body().deserialize().map_err(|error| refused(action, unit, error))?;
    let over = async {
        while let Some(signal) = ended.next().await {
            let signal = signal.map_err(|error| refused(action, unit, error))?;
            let told = signal.body().deserialize::<(u32, OwnedObjectPath, String, String)>();
            if let Ok((_, path, _, result)) = told
                && path == job
            {
                return Ok(result);
            }
        }
        Err(unreachable("the connection was closed"))
    };
    let late = |_| UnitError::Job { action, unit: unit.to_owned(), result: "not in time".to_owned() };
    match tokio::time::timeout(JOB_LIMIT, over).await.map_err(late)?? {
        result if result == DONE => Ok(()),
        result => Err(UnitError::Job { action, unit: unit.to_owned(), result }),
    }
}

fn variants(properties: Vec<Property>) -> Vec<(&'static str, Variant<'static>)> {
    let variant = |value| match value {
        Value::Flag(flag) => Variant::from(flag),
        Value::Number(number) => Variant::from(number),
        Value::Text(text) => Variant::from(text),
        Value::Names(names) => Variant::from(names),
    };
    properties.into_iter().map(|(name, value)| (name, variant(value))).collect()
}

fn is(error: &zbus::Error, name: &str) -> bool {
    matches!(error, zbus::Error::MethodError(own, ..) if own.as_str() == name)
}

fn unreachable(error: impl std::fmt::Display) -> UnitError {
    UnitError::Bus(error.to_string())
}

fn refused(action: &'static str, unit: &str, error: zbus::Error) -> UnitError {
    UnitError::Refused { action, unit: unit.to_owned(), why: error.to_string() }
}

#[cfg(test)]
#[path = "systemd_tests.rs"]
mod tests;
