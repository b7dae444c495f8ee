//! What expressions said of the devices that are offered. A device does not change while its slice does not, and an
//! expression sees nothing else: each is evaluated once for each device, whatever the number of pods and nodes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use api_types::resource_v1::DeviceSelector;
use parking_lot::Mutex;

use crate::pools::Offer;
use crate::selector::{SelectorError, Selectors};

/// Expressions whose verdicts are kept at a time, a byte for each device.
const KEPT: usize = 64;

const NO: u8 = 1;
const YES: u8 = 2;

/// What was said, by expression.
#[derive(Default)]
pub(crate) struct Judged(Mutex<HashMap<String, Verdicts>>);

/// What one expression said of each device, by its number; 0 where it was not asked yet.
type Verdicts = Arc<[AtomicU8]>;

impl Judged {
    /// What an expression said of so many devices.
    fn of(&self, expression: &str, devices: usize) -> Verdicts {
        let mut known = self.0.lock();
        if let Some(verdicts) = known.get(expression) {
            return Arc::clone(verdicts);
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let verdicts: Verdicts = (0..devices).map(|_| AtomicU8::new(0)).collect();
        known.insert(expression.to_owned(), Arc::clone(&verdicts));
        verdicts
    }

    /// The expressions of selectors, with what they said of so many devices. None stands for a selector of a kind that this
    /// build does not know.
    pub(crate) fn expressions(&self, selectors: &[DeviceSelector], devices: usize) -> Vec<Option<Expression>> {
        let with_verdicts = |text: &String| Expression { text: text.clone(), verdicts: self.of(text, devices) };
        selectors.iter().map(|selector| selector.cel.as_ref().map(|cel| with_verdicts(&cel.expression))).collect()
    }
}

/// An expression that selects devices.
pub(crate) struct Expression {
    text: String,
    verdicts: Verdicts,
}

impl Expression {
    /// Whether it wants a device. That it fails is not kept. Whoever asks about the same slices asks with the same selectors,
    /// as what an expression may use decides what it says.
    pub(crate) fn wants(&self, selectors: &Selectors, offer: Offer<'_>) -> Result<bool, SelectorError> {
        let known = self.verdicts.get(offer.number);
        match known.map(|verdict| verdict.load(Ordering::Relaxed)) {
            Some(YES) => return Ok(true),
            Some(NO) => return Ok(false),
            _ => {}
        }
        let wanted = selectors.matches(&self.text, &offer.slice.spec.driver, offer.device)?;
        if let Some(verdict) = known {
            verdict.store(if wanted { YES } else { NO }, Ordering::Relaxed);
        }
        Ok(wanted)
    }
}
