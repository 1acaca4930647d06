//! A builder of JSON objects, field by field.

use serde_json::{Map, Value};

/// The fields so far.
#[derive(Debug, Default)]
pub(super) struct JsonObjectBuilder(Map<String, Value>);

impl JsonObjectBuilder {
    pub(super) fn set_json_field(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<JsonObjectBuilder> for Value {
    fn from(object: JsonObjectBuilder) -> Self {
        Self::Object(object.0)
    }
}
