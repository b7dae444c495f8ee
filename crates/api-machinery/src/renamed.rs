//! An object under the name of another version of its kind that has the same form.

use std::sync::Arc;

use crate::meta::ObjectMeta;
use crate::object::{KindType, Object};
use crate::reflect::{Field, Reflect, StructType};

/// An object that says it is of another API version. Fields, table and encodings are the object's own; it is shared until
/// somebody writes.
#[derive(Clone)]
pub struct Renamed {
    named: &'static KindType,
    object: Arc<dyn Object>,
}

impl Renamed {
    /// The object as one of this kind, whose fields are the same.
    #[must_use]
    pub fn new(named: &'static KindType, object: Arc<dyn Object>) -> Self {
        Self { named, object }
    }

    /// The object under its own name.
    #[must_use]
    pub fn object(&self) -> &Arc<dyn Object> {
        &self.object
    }

    /// The object under its own name, for writing: a copy, where it is shared.
    pub fn object_mut(&mut self) -> &mut dyn Object {
        if Arc::get_mut(&mut self.object).is_none() {
            self.object = self.object.clone_object().into();
        }
        Arc::get_mut(&mut self.object).expect("invariant: nobody else has a copy that was just made")
    }
}

impl Reflect for Renamed {
    fn struct_type(&self) -> &'static StructType {
        self.object.struct_type()
    }

    fn field(&self, index: usize) -> &dyn Field {
        self.object.field(index)
    }

    fn field_mut(&mut self, index: usize) -> &mut dyn Field {
        self.object_mut().as_reflect_mut().field_mut(index)
    }

    fn present(&self) -> u128 {
        self.object.present()
    }
}

impl Object for Renamed {
    fn api_version(&self) -> String {
        self.named.api_version()
    }

    fn kind(&self) -> &str {
        self.object.kind()
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object_mut().meta_mut()
    }

    fn clone_object(&self) -> Box<dyn Object> {
        Box::new(self.clone())
    }

    fn as_reflect(&self) -> &dyn Reflect {
        self.object.as_reflect()
    }

    fn as_reflect_mut(&mut self) -> &mut dyn Reflect {
        self.object_mut().as_reflect_mut()
    }
}
