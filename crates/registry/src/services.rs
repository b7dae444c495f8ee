//! stub
use std::sync::Arc;
use base::SharedRng;
use storage::Backend;
use crate::companion::Companion;
#[derive(Clone, Default, Debug)]
pub struct ServiceOptions {}
#[derive(Default)]
pub(crate) struct Reservation {}
pub struct ServiceCompanion {}
impl ServiceCompanion { pub(crate) fn new(_: &ServiceOptions, _: Arc<dyn Backend>, _: SharedRng, _: &str) -> Self { Self {} } }
impl Companion for ServiceCompanion {}
