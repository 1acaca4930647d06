//! Defines what an agent needs to work without a person, for `run --agent`: how it is started with
//! hooks for that one run, and what its output says about how it went. The module makes arguments
//! and file contents and reads lines; it starts nobody.

use checkrein_core::transition::{Reason, Transition};

/// How one agent is started without a person, and how its output is read.
pub trait HeadlessAgent: Sync {
    /// The program's usual name.
    fn agent_program_name(&self) -> &'static str;

    /// Whether Checkrein can choose the id of a new conversation.
    fn agent_accepts_our_session_id(&self) -> bool;

    /// Returns how it is started. The prompt comes on its stdin.
    fn launch_plan(&self, launch: &AgentLaunchRequest<'_>) -> AgentArgumentsAndSettings;

    /// Returns the first of these arguments that conflicts with `run`: `run` sets it itself, or
    /// hooks do not fire with it.
    fn argument_conflicting_with_run<'a>(&self, arguments: &'a [String]) -> Option<&'a str>;

    /// Returns a reader of what it prints, line by line.
    fn agent_output_reader(&self) -> Box<dyn AgentOutputReader + Send>;

    /// Returns where it keeps its conversations, if one has to be read before it is resumed.
    fn agent_transcripts_folder(&self) -> Option<TranscriptFolder>;

    /// Returns what a conversation had used so far, by its transcript. `None` where the output of a
    /// resumed one tells only what was used since.
    fn prior_conversation_usage(&self, transcript: &[u8]) -> Option<AgentTokensAndCost>;
}

/// A folder of conversations: files that end with the id and `.jsonl`, in folders by date.
#[derive(Debug, Clone, Copy)]
pub struct TranscriptFolder {
    /// The variable that names the agent's own folder.
    pub home_variable: &'static str,
    /// That folder, below the home folder, if the variable is not set.
    pub default_home: &'static str,
    /// The conversations, below it.
    pub subfolder: &'static str,
}

/// What an agent is started with.
#[derive(Debug)]
pub struct AgentLaunchRequest<'a> {
    /// Which conversation.
    pub conversation: LaunchConversation<'a>,
    /// The program that is called as a hook.
    pub hook: &'a str,
    /// Its arguments, without the deadline.
    pub arguments: &'a [String],
    /// The path at which [`AgentArgumentsAndSettings::settings`] will be written.
    pub settings: &'a str,
    /// Further arguments that the person wants to pass to the agent.
    pub extra: &'a [String],
}

/// Which conversation an agent is started in.
#[derive(Debug, Clone, Copy)]
pub enum LaunchConversation<'a> {
    /// A new one; an id, if the agent takes one.
    New(Option<&'a str>),
    /// One that is there, by the agent's id.
    Resumed(&'a str),
}

/// How an agent is started.
#[derive(Debug)]
pub struct AgentArgumentsAndSettings {
    /// The arguments.
    pub arguments: Vec<String>,
    /// The contents of the settings file, if it needs one.
    pub settings: Option<Vec<u8>>,
}

/// Reads an agent's output.
pub trait AgentOutputReader {
    /// Takes a line in. A line that cannot be read is skipped.
    fn parse_agent_output_line(&mut self, line: &[u8]) -> Option<AgentOutputItem>;

    /// Returns what is known so far.
    fn agent_output_summary_so_far(&self) -> &AgentOutputSummary;
}

/// Something in the output that a person may want to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentOutputItem {
    /// A message of the agent.
    Message(String),
    /// It calls a tool.
    Call(String),
}

/// What an agent's output has reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOutputSummary {
    /// The agent's id of the conversation.
    pub session: Option<String>,
    /// Its last message, bounded.
    pub message: Option<String>,
    /// Tool calls seen.
    pub calls: u64,
    /// The use that it reported.
    pub usage: Option<TokenUsageOfRunOrConversation>,
    /// The ending that it reported.
    pub ending: Option<ReportedAgentEnding>,
}

/// What a count of tokens is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUsageOfRunOrConversation {
    /// This run of the program; with sub-agents, unless `partial`.
    ThisRun {
        /// What was used.
        usage: AgentTokensAndCost,
        /// Something is known to be missing.
        partial: bool,
    },
    /// The whole conversation so far.
    Cumulative(AgentTokensAndCost),
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentTokensAndCost {
    /// All input, what was cached included.
    pub input: u64,
    /// The part of it that came from a cache.
    pub cached: u64,
    /// The part of it that was written to a cache.
    pub cache_write: u64,
    /// All output, thinking included.
    pub output: u64,
    /// Billionths of a dollar, where the agent says what it cost.
    pub cost: Option<u64>,
}

impl AgentTokensAndCost {
    /// Returns the sum of both.
    #[must_use]
    pub fn saturating_add_usage(self, other: Self) -> Self {
        // A cost that is known on one side only stays: it is a lower bound, and dropping it would
        // lift a cap.
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            cost,
        }
    }

    /// Returns what was used since `before`.
    #[must_use]
    pub fn subtract_earlier_usage(self, before: Self) -> Self {
        Self {
            // A total that is smaller than before was begun anew; it must not wrap around to a huge
            // use.
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            output: self.output.saturating_sub(before.output),
            cost: self
                .cost
                .map(|cost| cost.saturating_sub(before.cost.unwrap_or(0))),
        }
    }
}

/// How an agent's program says that it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportedAgentEnding {
    /// It ended in order, which is a claim of done and no more.
    Claimed,
    /// Something failed that may work the next time. The transition is how the task ends if it does
    /// not.
    Failed(Transition),
    /// It ended for good: it would end so again, or somebody wants it so.
    Final(Transition),
    /// A person interrupted it.
    Interrupted(Transition),
}

/// Creates a transition with the vendor's word for it.
pub(crate) fn transition_with_vendor_word(
    reason: Reason,
    detail: Option<&str>,
    word: &str,
) -> Transition {
    Transition {
        reason,
        detail: detail.map(str::to_owned),
        native_reason: Some(word.trim().to_owned()),
    }
}

/// Parses a decimal number, as JSON writes it, into billionths. It uses no floats, so no digit is
/// lost.
pub(crate) fn parse_billionths(text: &str) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // A minus sign is no digit, so a negative cost is refused here.
    let digits: String = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The number of digits before the point, once the number is counted in billionths.
    let point = i32::try_from(whole.len())
        .ok()?
        .checked_add(exponent)?
        .checked_add(9)?;
    // Bounded before it becomes a length: an exponent of a million must not allocate. A number with
    // 40 digits overflows the parse below in any case.
    let point = usize::try_from(point.clamp(0, 40)).ok()?;
    let kept: String = digits
        .chars()
        .chain(std::iter::repeat('0'))
        .take(point)
        .collect();
    let value = if kept.is_empty() {
        0
    } else {
        kept.parse::<u64>().ok()?
    };
    // The first digit that was dropped rounds the result.
    let next = digits.as_bytes().get(point).copied();
    Some(value.saturating_add(u64::from(next.is_some_and(|digit| digit >= b'5'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_in_integers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000_000_000)),
            ("0.0009478", Some(947_800)),
            ("0.049654699999999996", Some(49_654_700)),
            ("1.5e-7", Some(150)),
            ("2E1", Some(20_000_000_000)),
            ("4e-11", Some(0)),
            ("-1", None),
            ("", None),
            ("x", None),
            ("1e99", None),
        ] {
            assert_eq!(parse_billionths(text), expected, "{text}");
        }
    }
}
