//! Defines the actions of the scripted model independently of any agent. A scenario is one script;
//! each API module translates its actions into the agent's own tools.

use serde_json::Value;

/// An action of the model in a response.
#[derive(Debug, Clone)]
pub enum ScriptedModelAction {
    /// Plain text; a response without tool calls is a claim of done.
    Say(String),
    /// A shell command.
    Shell(String),
    /// A new file.
    Write {
        /// Its path in the repo.
        path: String,
        /// Its whole content.
        text: String,
    },
    /// Replaces one line of a file, through the agent's own editing tool.
    Replace {
        /// Its path in the repo.
        path: String,
        /// The line.
        old: String,
        /// What it becomes.
        new: String,
    },
    /// Reads a file; Claude Code edits only files that it has read.
    Read(String),
    /// Starts a sub-agent.
    Delegate(String),
    /// Any tool of the agent, by its own name and arguments.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments; a string for a tool that takes no JSON.
        input: Value,
    },
}

impl ScriptedModelAction {
    /// Returns a response of this text only.
    pub fn scripted_text_response(text: &str) -> Vec<Self> {
        vec![Self::Say(text.to_owned())]
    }

    /// A response of one command.
    pub fn scripted_shell_response(command: &str) -> Vec<Self> {
        vec![Self::Shell(command.to_owned())]
    }

    /// A response of one new file.
    pub fn scripted_new_file_response(path: &str, text: &str) -> Vec<Self> {
        vec![Self::Write {
            path: path.to_owned(),
            text: text.to_owned(),
        }]
    }
}

/// A request to the model.
#[derive(Debug, Clone, Default)]
pub struct ScriptedModelRequest {
    /// Its number, from 0, among all requests that offer tools.
    pub number: usize,
    /// The text of the messages before the model's first answer, by which a sub-agent is
    /// recognized.
    pub opening_text: String,
    /// All of its text, without the system prompt and the tools.
    pub full_text: String,
    /// The text since the model's last answer.
    pub new_text: String,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
}

/// The model: what it does when it is asked.
pub type ScriptedModelFn = Box<dyn FnMut(&ScriptedModelRequest) -> Vec<ScriptedModelAction> + Send>;

/// Returns a script in which the n-th request gets the n-th response; the last one is repeated for
/// ever.
pub fn model_script_from_rounds(rounds: Vec<Vec<ScriptedModelAction>>) -> ScriptedModelFn {
    Box::new(move |asked| {
        // Repeated, not ended: an agent that is sent back once more than the scenario expects shows
        // it in its verdict, not as a failed request.
        let at = asked.number.min(rounds.len().saturating_sub(1));
        rounds.get(at).cloned().unwrap_or_default()
    })
}

/// Returns the output tokens that the n-th response reports. All differ, so that a sum shows which
/// responses were counted.
pub fn output_tokens_of_nth_response(number: usize) -> u64 {
    let number = number as u64;
    11 + 13 * number + number * number
}

/// Every text in a JSON value, in order.
pub(crate) fn join_strings_in_json_value(value: &Value) -> String {
    let mut found = Vec::new();
    collect_strings_in_json_value(value, &mut found);
    found.join("\n")
}

fn collect_strings_in_json_value<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_strings_in_json_value(item, found)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| collect_strings_in_json_value(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
