//! A config as typed values. The table of keys has checked them before, and whatever has a default
//! there is always set.

use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::{
    ApprovalMode, Stance, SubagentStopVerification, TokenLimitOrTarget, VerifiedNoticeMode,
    VerifyOnChangeOrAlways,
};
use checkrein_execpolicy::UnmatchedDecision;
use checkrein_verifiers::judge::{JudgeTriggerMode, MainOrSubagentConversation};
use serde::Deserialize;

use super::loops::LoopDetectorConfigTable;

/// The whole file except its profiles, which are laid over it before.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct DeserializedConfigFile {
    pub(super) goal: Option<String>,
    pub(super) accept: Option<String>,
    pub(super) verify_on: VerifyOnChangeOrAlways,
    pub(super) caps: CapsConfigTable,
    #[serde(default)]
    pub(super) session_caps: SessionCapsConfigTable,
    pub(super) subagents: SubagentsConfigTable,
    pub(super) token_budget: TokenBudgetConfigTable,
    pub(super) loops: LoopDetectorConfigTable,
    pub(super) stance: StanceConfigTable,
    pub(super) policy: PolicyConfigTable,
    pub(super) approvals: ApprovalsConfigTable,
    pub(super) ui: UiConfigTable,
    pub(super) store: StoreConfigTable,
    pub(super) veto: VetoConfigTable,
    pub(super) progress: ProgressConfigTable,
    #[serde(default)]
    pub(super) middleware: Vec<MiddlewareConfigTable>,
    #[serde(default)]
    pub(super) detector: Vec<DetectorProgramTable>,
    #[serde(default)]
    pub(super) verifier: Vec<VerifierConfigTable>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct CapsConfigTable {
    pub(super) token_budget: u64,
    pub(super) wall_clock: ConfigDuration,
    pub(super) tool_calls: u64,
    pub(super) max_iterations: u64,
    pub(super) attempts: u64,
    pub(super) continues: u64,
    pub(super) cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct SessionCapsConfigTable {
    pub(super) token_budget: Option<u64>,
    pub(super) wall_clock: Option<ConfigDuration>,
    pub(super) tool_calls: Option<u64>,
    pub(super) max_iterations: Option<u64>,
    pub(super) continues: Option<u64>,
    pub(super) cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct SubagentsConfigTable {
    pub(super) max_iterations: u64,
    pub(super) verify: SubagentStopVerification,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct TokenBudgetConfigTable {
    pub(super) threshold: f64,
    pub(super) diminishing_tokens: u64,
    pub(super) diminishing_rounds: u64,
    pub(super) mode: TokenLimitOrTarget,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct StanceConfigTable {
    pub(super) tool: Stance,
    pub(super) stop: Stance,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PolicyConfigTable {
    pub(super) rules: Option<Vec<String>>,
    pub(super) unmatched: Option<UnmatchedDecision>,
    pub(super) opaque: Option<OpaqueCodeDecision>,
    #[serde(default)]
    pub(super) protect: Vec<String>,
    pub(super) approval: ApprovalMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OpaqueCodeDecision {
    Allow,
    Prompt,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ApprovalsConfigTable {
    pub(super) expires: ConfigDuration,
    pub(super) notify: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct UiConfigTable {
    pub(super) verified: VerifiedNoticeMode,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct StoreConfigTable {
    pub(super) keep: ConfigDuration,
    pub(super) max_size: ByteSize,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct VetoConfigTable {
    pub(super) enabled: bool,
    pub(super) model: Option<String>,
    pub(super) scope: VetoCallSelection,
    pub(super) min_confidence: f64,
    pub(super) max_calls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VetoCallSelection {
    Risky,
    All,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProgressConfigTable {
    pub(super) enabled: bool,
    pub(super) model: Option<String>,
    pub(super) threshold: f64,
    pub(super) window: u64,
    pub(super) max_calls: u64,
}

/// One `[[middleware]]`. A profile may set only what differs.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MiddlewareConfigTable {
    pub(super) name: String,
    #[serde(default)]
    pub(super) run: String,
    #[serde(default)]
    pub(super) on: Vec<MiddlewareStage>,
    pub(super) order: Option<i32>,
    pub(super) timeout: Option<ConfigDuration>,
    pub(super) stance: Option<MiddlewareFailureStance>,
}

/// One `[[detector]]`. There is one place yet where it can be asked.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct DetectorProgramTable {
    pub(super) name: String,
    #[serde(default)]
    pub(super) run: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MiddlewareFailureStance {
    Block,
    Allow,
}

/// One `[[verifier]]`. The defaults depend on its kind.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct VerifierConfigTable {
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) run: Option<String>,
    pub(super) schema: Option<String>,
    pub(super) target: Option<String>,
    pub(super) ask: Option<String>,
    pub(super) expires: Option<ConfigDuration>,
    pub(super) model: Option<String>,
    pub(super) trigger: Option<JudgeTriggerMode>,
    pub(super) keywords: Option<Vec<String>>,
    pub(super) heartbeat: Option<bool>,
    pub(super) surfaces: Option<Vec<MainOrSubagentConversation>>,
    pub(super) max_attempts: Option<u64>,
    pub(super) mode: Option<JudgeEnforcedOrShadow>,
    pub(super) min_score: Option<f64>,
    pub(super) rubric: Option<String>,
    #[serde(default)]
    pub(super) inputs: Vec<String>,
    #[serde(default)]
    pub(super) outputs: Vec<String>,
    pub(super) timeout: Option<ConfigDuration>,
    pub(super) retries: Option<u64>,
    #[serde(default)]
    pub(super) env: Vec<String>,
    #[serde(default)]
    pub(super) advisory: bool,
    pub(super) stance: Option<Stance>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JudgeEnforcedOrShadow {
    Enforce,
    Shadow,
}

/// A span of time: `"90s"`, `"10m"`, `"4h"`, `"1h 30m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ConfigDuration {
    /// In milliseconds.
    pub ms: u64,
}

impl ConfigDuration {
    /// Reads the text form.
    pub fn parse_time_span(text: &str) -> Option<Self> {
        let mut ms: u64 = 0;
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        // Several parts may follow one another: `1h 30m`.
        while !rest.is_empty() {
            // A number without a unit is refused: nobody can tell what it means.
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let (number, tail) = rest.split_at_checked(digits)?;
            let number: u64 = number.parse().ok()?;
            let word = tail
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(tail.len());
            let (unit, tail) = tail.split_at_checked(word)?;
            let unit_ms = match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return None,
            };
            // Too large a span is refused, since a wrapped one would be a short one.
            ms = ms.checked_add(number.checked_mul(unit_ms)?)?;
            rest = tail.trim_start();
        }
        Some(Self { ms })
    }
}

/// A size: `"500MB"`, `"2GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct ByteSize {
    /// In bytes.
    pub bytes: u64,
}

impl ByteSize {
    /// Reads the text form.
    pub(super) fn parse_byte_size(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at_checked(digits)?;
        let unit: u64 = match unit.trim_start() {
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return None,
        };
        let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
        Some(Self { bytes })
    }
}

impl TryFrom<String> for ConfigDuration {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse_time_span(&text).ok_or("not a span of time")
    }
}

impl TryFrom<String> for ByteSize {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse_byte_size(&text).ok_or("not a size")
    }
}
