//! Defines a judge as the sealed policy describes it.

use serde::{Deserialize, Serialize};

/// A judge's definition, canonical JSON in the sealed policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeDefinition {
    /// `provider/model`. `None` stands for a model of another family than the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it is asked.
    pub trigger: JudgeTriggerMode,
    /// Words and phrases in an answer that trigger it under `keywords`.
    pub keywords: Vec<String>,
    /// Whether it judges answers to heartbeats: all of them, whatever they say.
    pub heartbeat: bool,
    /// The kinds of conversation whose answers it judges.
    pub surfaces: Vec<MainOrSubagentConversation>,
    /// The least score that passes, in thousandths.
    pub min_score: u32,
    /// Further criteria, in the project's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// Rules that the project gives its agents, by file, as they were when the session began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<AgentInstructionsFile>,
}

/// `trigger`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeTriggerMode {
    /// An answer that holds one of the keywords.
    #[default]
    Keywords,
    /// Every answer.
    Always,
}

/// A kind of conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MainOrSubagentConversation {
    /// The one that a person talks to.
    Main,
    /// A sub-agent's.
    Subagent,
}

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInstructionsFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Default keywords (seed: OpenClaw pull request 21832).
pub const DEFAULT_KEYWORDS: [&str; 5] = ["done", "completed", "finished", "ready", "here you go"];

/// Files that hold rules for agents, in the order in which a judge reads them.
pub const RULE_FILE_NAMES: [&str; 4] = ["AGENTS.md", "SOUL.md", "CLAUDE.md", "GEMINI.md"];
