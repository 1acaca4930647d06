//! Holds the tools that an agent has and checks calls against them without a model.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use checkrein_models::ToolDefinition;
use checkrein_models::quoted::{KeepTextStartOrEnd, clip_text};
use serde_json::Value;

use super::signature::tool_parameter_signature;
use crate::reviewer::push_text_as_one_line;
use crate::schema::tool_schema::CompiledToolSchema;

/// Bytes shown of all names, and of one tool's parameters.
const MAX_NAMES: usize = 300;
const MAX_TAKES: usize = 400;
/// Similarity from which a name counts as a misspelling.
const NEAR: f64 = 0.8;

/// All tools of an agent, prepared for repeated checks.
#[derive(Debug)]
pub struct ToolsWithCompiledSchemas {
    known: BTreeMap<String, ToolWithCompiledSchema>,
    /// All names on one line.
    names: String,
}

/// One of them.
#[derive(Debug)]
pub struct ToolWithCompiledSchema {
    /// Its parameters in few words, on one line.
    takes: String,
    /// `None` if its schema accepts everything or cannot be used.
    fitting: Option<Mutex<CompiledToolSchema>>,
    doubt: Option<String>,
}

/// Why a call is invalid, whatever its purpose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToolCallError {
    /// There is no such tool.
    #[error("there is no tool '{tool}'{hint}")]
    UnknownTool {
        /// The name that was called.
        tool: String,
        /// What there is instead.
        hint: String,
    },
    /// The tool exists, but the arguments do not fit its schema.
    #[error("the arguments do not fit the schema of '{tool}': {what}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What does not fit.
        what: String,
    },
}

impl ToolsWithCompiledSchemas {
    /// Prepares these tools.
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let known: BTreeMap<String, ToolWithCompiledSchema> = tools
            .into_iter()
            .map(|tool| (tool.name.clone(), ToolWithCompiledSchema::new(tool)))
            .collect();
        let mut names = String::new();
        push_text_as_one_line(&mut names, &tool_names_within_limit(&known).join(", "));
        Self { known, names }
    }

    /// Returns the tool of this name.
    pub fn tool_by_name(&self, name: &str) -> Option<&ToolWithCompiledSchema> {
        self.known.get(name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the errors of schemas that cannot be used for validation.
    pub fn unusable_tool_schema_errors(&self) -> impl Iterator<Item = &str> {
        self.known
            .values()
            .filter_map(|known| known.doubt.as_deref())
    }

    /// Checks that the tool exists and that the arguments fit its schema.
    ///
    /// # Errors
    /// Why it cannot, in words for the agent.
    pub fn check_tool_call_schema(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), InvalidToolCallError> {
        let Some(known) = self.known.get(tool) else {
            return Err(InvalidToolCallError::UnknownTool {
                tool: clip_text(tool, 100, KeepTextStartOrEnd::Start).into_owned(),
                hint: self.unknown_tool_hint(tool),
            });
        };
        known.validate_tool_call_arguments(tool, arguments)
    }

    pub(super) fn joined_tool_names(&self) -> &str {
        &self.names
    }

    fn unknown_tool_hint(&self, tool: &str) -> String {
        let near = self
            .known
            .keys()
            .map(|name| (strsim::jaro_winkler(name, tool), name))
            // A name that is only vaguely similar would send the agent to the wrong tool.
            .filter(|(likeness, _)| *likeness > NEAR)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match near {
            Some((_, name)) => format!("; did you mean '{name}'?"),
            None if self.known.is_empty() => String::new(),
            None => format!(
                "; there are: {}",
                tool_names_within_limit(&self.known).join(", ")
            ),
        }
    }
}

/// Returns the names that fit into the room.
fn tool_names_within_limit(known: &BTreeMap<String, ToolWithCompiledSchema>) -> Vec<String> {
    let mut room = MAX_NAMES;
    let mut names = Vec::new();
    for name in known.keys() {
        let Some(left) = room.checked_sub(name.len()) else {
            // The list is cut and says so, or the model would take it for complete.
            names.push(format!("and {} more", known.len() - names.len()));
            break;
        };
        room = left;
        names.push(name.clone());
    }
    names
}

impl ToolWithCompiledSchema {
    /// Prepares one tool.
    pub fn new(tool: &ToolDefinition) -> Self {
        let text = tool.schema.to_string();
        let mut takes = String::new();
        let signature = tool_parameter_signature(&tool.schema);
        push_text_as_one_line(
            &mut takes,
            &clip_text(&signature, MAX_TAKES, KeepTextStartOrEnd::Start),
        );
        let (fitting, doubt) = match CompiledToolSchema::new(&tool.name, text) {
            Ok(fitting) => (fitting.map(Mutex::new), None),
            // A schema that cannot be used lets every call pass: the fault is the tool's, not the
            // agent's.
            Err(what) => (None, Some(what)),
        };
        Self {
            takes,
            fitting,
            doubt,
        }
    }

    /// Checks the arguments of a call of this tool.
    ///
    /// # Errors
    /// Why it cannot, in words for the agent.
    pub fn validate_tool_call_arguments(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), InvalidToolCallError> {
        self.check_tool_arguments(arguments).map_err(|what| {
            InvalidToolCallError::InvalidArguments {
                tool: tool.to_owned(),
                what,
            }
        })
    }

    pub(super) fn tool_parameter_summary(&self) -> &str {
        &self.takes
    }

    /// Checks the arguments; the error says what does not fit.
    pub(super) fn check_tool_arguments(&self, arguments: &Value) -> Result<(), String> {
        match &self.fitting {
            None => Ok(()),
            // A poisoned lock is fine: each validation sets its budget anew, so a panic left
            // nothing half done.
            Some(fitting) => fitting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .check_arguments_against_schema(arguments),
        }
    }
}
