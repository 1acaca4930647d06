//! The tools that an agent has: what can be said of a call without a model.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use checkrein_models::ToolDefinition;
use checkrein_models::quoted::{KeptTextPart, clip_text};
use serde_json::Value;

use super::signature::tool_parameter_signature;
use crate::reviewer::push_one_line;
use crate::schema::tool_schema::CompiledToolSchema;

/// Bytes that are shown of all names, and of what one tool takes.
const MAX_NAMES: usize = 300;
const MAX_TAKES: usize = 400;
/// More like a name than this is a slip of it.
const NEAR: f64 = 0.8;

/// All tools of an agent, prepared to be asked about again and again.
#[derive(Debug)]
pub struct ToolsPreparedForVeto {
    known: BTreeMap<String, ToolWithCompiledSchema>,
    /// On one line.
    names: String,
}

/// One of them.
#[derive(Debug)]
pub struct ToolWithCompiledSchema {
    /// Its schema in few words, on one line.
    takes: String,
    /// `None` if its schema asks for nothing, or cannot be used.
    fitting: Option<Mutex<CompiledToolSchema>>,
    doubt: Option<String>,
}

/// Why a call cannot be right, whatever it is for.
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
    /// There is, and it takes other arguments.
    #[error("the arguments do not fit the schema of '{tool}': {what}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What does not fit.
        what: String,
    },
}

impl ToolsPreparedForVeto {
    /// Prepares these tools.
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let known: BTreeMap<String, ToolWithCompiledSchema> = tools
            .into_iter()
            .map(|tool| (tool.name.clone(), ToolWithCompiledSchema::new(tool)))
            .collect();
        let mut names = String::new();
        push_one_line(&mut names, &displayed_tool_names(&known).join(", "));
        Self { known, names }
    }

    /// The one of this name.
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

    /// What is wrong with schemas that arguments cannot be laid against.
    pub fn unusable_tool_schema_errors(&self) -> impl Iterator<Item = &str> {
        self.known
            .values()
            .filter_map(|known| known.doubt.as_deref())
    }

    /// Whether such a call can be right.
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
                tool: clip_text(tool, 100, KeptTextPart::Start).into_owned(),
                hint: self.unknown_tool_hint(tool),
            });
        };
        known.check_call_arguments(tool, arguments)
    }

    pub(super) fn tool_names(&self) -> &str {
        &self.names
    }

    fn unknown_tool_hint(&self, tool: &str) -> String {
        let near = self
            .known
            .keys()
            .map(|name| (strsim::jaro_winkler(name, tool), name))
            .filter(|(likeness, _)| *likeness > NEAR)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match near {
            Some((_, name)) => format!("; did you mean '{name}'?"),
            None if self.known.is_empty() => String::new(),
            None => format!(
                "; there are: {}",
                displayed_tool_names(&self.known).join(", ")
            ),
        }
    }
}

/// The names, as far as there is room for them.
fn displayed_tool_names(known: &BTreeMap<String, ToolWithCompiledSchema>) -> Vec<String> {
    let mut room = MAX_NAMES;
    let mut names = Vec::new();
    for name in known.keys() {
        let Some(left) = room.checked_sub(name.len()) else {
            names.push(format!("and {} more", known.len() - names.len()));
            break;
        };
        room = left;
        names.push(name.clone());
    }
    names
}

impl ToolWithCompiledSchema {
    /// Prepares one.
    pub fn new(tool: &ToolDefinition) -> Self {
        let text = tool.schema.to_string();
        let mut takes = String::new();
        let signature = tool_parameter_signature(&tool.schema);
        push_one_line(
            &mut takes,
            &clip_text(&signature, MAX_TAKES, KeptTextPart::Start),
        );
        let (fitting, doubt) = match CompiledToolSchema::new(&tool.name, text) {
            Ok(fitting) => (fitting.map(Mutex::new), None),
            Err(what) => (None, Some(what)),
        };
        Self {
            takes,
            fitting,
            doubt,
        }
    }

    /// Whether a call of it with these arguments can be right.
    ///
    /// # Errors
    /// Why it cannot, in words for the agent.
    pub fn check_call_arguments(
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

    /// Whether these arguments fit; else what does not.
    pub(super) fn check_tool_arguments(&self, arguments: &Value) -> Result<(), String> {
        match &self.fitting {
            None => Ok(()),
            // A validation that panicked left nothing half done: its budget is set anew.
            Some(fitting) => fitting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .check_arguments(arguments),
        }
    }
}
