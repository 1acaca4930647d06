//! Parses the definition of a `schema` verifier: the target, and the schema's text as it was
//! sealed, so that no edit of the file loosens a running session.

use serde::Deserialize;

use super::MAX_SCHEMA;
use super::target::FileOrMessageSchemaTarget;
use crate::VerifierDefinitionError;

/// `{"schema": "weekly.schema.json", "text": "{...}", "target": "out/report.json"}`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSchemaDefinition {
    schema: String,
    #[serde(default)]
    text: Option<String>,
    target: String,
}

/// The parsed definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaVerifierDefinition {
    /// The schema's file name, for messages.
    pub(super) schema: String,
    /// The text of the file; `None` if it did not exist.
    pub(super) text: Option<String>,
    pub(super) target: FileOrMessageSchemaTarget,
}

impl SchemaVerifierDefinition {
    /// Parses the definition without compiling the schema.
    pub(super) fn parse_definition(text: &str) -> Result<Self, VerifierDefinitionError> {
        let written: RawSchemaDefinition =
            serde_json::from_str(text).map_err(|source| VerifierDefinitionError::Shape {
                kind: "schema",
                source,
            })?;
        if written.schema.trim().is_empty() {
            return Err(VerifierDefinitionError::Empty { key: "schema" });
        }
        let size = written.text.as_ref().map_or(0, String::len);
        if size > MAX_SCHEMA {
            let what = format!(
                "{}: larger than {} KiB ({size} bytes)",
                written.schema,
                MAX_SCHEMA >> 10
            );
            return Err(VerifierDefinitionError::Schema { what });
        }
        Ok(Self {
            target: FileOrMessageSchemaTarget::parse_schema_target(&written.target)?,
            schema: written.schema,
            text: written.text,
        })
    }
}
