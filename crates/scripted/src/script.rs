//! What the scripted model does, said without the words of any one agent: a scenario is
//! one script, and each dialect turns its acts into the agent's own tools.

use serde_json::Value;

/// One thing that the model does in a response.
#[derive(Debug, Clone)]
pub enum ScriptedModelAction {
    /// Plain text; a response of text alone is a claim of done.
    Say(String),
    /// A shell command.
    Shell(String),
    /// A new file.
    Write {
        /// Its path in the repo.
        path: String,
        /// All of it.
        text: String,
    },
    /// One line of a file becomes another, through the agent's own editing tool.
    Replace {
        /// Its path in the repo.
        path: String,
        /// The line.
        old: String,
        /// What it becomes.
        new: String,
    },
    /// A look at a file; Claude Code edits only what was read.
    Read(String),
    /// Starts a sub-agent.
    Delegate(String),
    /// Any tool of the agent, by its own name and arguments.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments; a text for a tool that takes no JSON.
        input: Value,
    },
}

impl ScriptedModelAction {
    /// A response that says this and nothing else.
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

/// One request to the model.
#[derive(Debug, Clone, Default)]
pub struct ScriptedModelRequest {
    /// Counted from 0 over all requests that offer tools.
    pub number: usize,
    /// The text of the conversation's first messages, by which a sub-agent is told.
    pub opening_text: String,
    /// All of its text, without the system prompt and the tools.
    pub full_text: String,
    /// What came since the model's last word.
    pub new_text: String,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
}

/// The model: what it does when it is asked.
pub type ModelScript = Box<dyn FnMut(&ScriptedModelRequest) -> Vec<ScriptedModelAction> + Send>;

/// The n-th request gets the n-th response; the last one is repeated for ever.
pub fn model_script_from_rounds(rounds: Vec<Vec<ScriptedModelAction>>) -> ModelScript {
    Box::new(move |asked| {
        let at = asked.number.min(rounds.len().saturating_sub(1));
        rounds.get(at).cloned().unwrap_or_default()
    })
}

/// What the n-th response is said to have cost: no two alike, so that a sum tells them apart.
pub fn scripted_output_tokens(number: usize) -> u64 {
    let number = number as u64;
    11 + 13 * number + number * number
}

/// Every text in a JSON value, in order.
pub(crate) fn join_strings_in_json_value(value: &Value) -> String {
    let mut found = Vec::new();
    gather_json_texts(value, &mut found);
    found.join("\n")
}

fn gather_json_texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather_json_texts(item, found)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| gather_json_texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
