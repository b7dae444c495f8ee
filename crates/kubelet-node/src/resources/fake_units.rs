//! A systemd that only remembers its units, and what every systemd, real or not, is expected to do.

use std::collections::BTreeMap;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::units::{Property, Started, UnitError, Units, Value};

/// Units by name.
#[derive(Default)]
pub(super) struct FakeUnits {
    units: Mutex<BTreeMap<String, BTreeMap<&'static str, Value>>>,
    calls: Mutex<Vec<String>>,
}

impl FakeUnits {
    /// What was asked since the last time.
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock())
    }

    pub(super) fn property(&self, unit: &str, name: &str) -> Option<Value> {
        self.units.lock().get(unit)?.get(name).cloned()
    }
}

#[async_trait]
impl Units for FakeUnits {
    fn version(&self) -> u32 {
        252
    }

    async fn start(&self, unit: &str, properties: Vec<Property>) -> Result<Started, UnitError> {
        self.calls.lock().push(format!("start {unit}"));
        let mut units = self.units.lock();
        if units.contains_key(unit) {
            return Ok(Started::Before);
        }
        units.insert(unit.to_owned(), properties.into_iter().collect());
        Ok(Started::Now)
    }

    /// systemd itself takes properties of slices that are not there, too; nobody here is to rely on it.
    async fn set(&self, unit: &str, properties: Vec<Property>) -> Result<(), UnitError> {
        self.calls.lock().push(format!("set {unit}"));
        let mut units = self.units.lock();
        let Some(found) = units.get_mut(unit) else {
            let why = format!("Unit {unit} not found.");
            return Err(UnitError::Refused { action: "set", unit: unit.to_owned(), why });
        };
        found.extend(properties);
        Ok(())
    }

    async fn stop(&self, unit: &str) -> Result<(), UnitError> {
        self.calls.lock().push(format!("stop {unit}"));
        self.units.lock().remove(unit);
        Ok(())
    }
}

/// What every systemd does. `unit` is a slice that does not exist yet; `read` tells one of its numbers.
pub(super) async fn contract(units: &dyn Units, unit: &str, read: impl AsyncFn(&str, &str) -> Option<u64>) {
    assert!(units.version() > 200);
    let number = |name, value| vec![(name, Value::Number(value))];
    units.stop(unit).await.unwrap();
    let first = vec![
        ("Description", Value::Text("a test".into())),
        ("Wants", Value::Names(vec!["-.slice".into()])),
        ("DefaultDependencies", Value::Flag(false)),
        ("CPUWeight", Value::Number(7)),
    ];
    assert_eq!(units.start(unit, first).await.unwrap(), Started::Now);
    assert_eq!(read(unit, "CPUWeight").await, Some(7));
    assert_eq!(units.start(unit, number("CPUWeight", 9)).await.unwrap(), Started::Before);
    assert_eq!(read(unit, "CPUWeight").await, Some(7), "what is there is left as it is");
    units.set(unit, number("CPUWeight", 11)).await.unwrap();
    assert_eq!(read(unit, "CPUWeight").await, Some(11));
    units.stop(unit).await.unwrap();
    assert_eq!(units.start(unit, number("CPUWeight", 13)).await.unwrap(), Started::Now, "it was gone");
    units.stop(unit).await.unwrap();
}

#[tokio::test]
async fn the_fake_is_a_systemd() {
    let fake = FakeUnits::default();
    let read = async |unit: &str, name: &str| match fake.property(unit, name) {
        Some(Value::Number(number)) => Some(number),
        _ => None,
    };
    contract(&fake, "test.slice", read).await;
}
