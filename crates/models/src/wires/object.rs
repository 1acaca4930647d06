//! A JSON object that is put together field by field.

use serde_json::{Map, Value};

/// The fields so far.
#[derive(Debug, Default)]
pub(super) struct Object(Map<String, Value>);

impl Object {
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}
