//! The part of a rule set that is not in `.rules` files: what holds for commands that no rule
//! names, and which paths nobody writes.

use serde::{Deserialize, Serialize};

/// What holds for a command that no rule names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmatchedDecision {
    /// The rules have no opinion.
    #[default]
    Allow,
    /// A person is asked.
    Prompt,
    /// What it does decides: ordinary work is allowed, the rest is asked about.
    ByEffect,
}

/// What is decided beside the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EffectPolicy {
    /// For commands that no rule names.
    pub unmatched: UnmatchedDecision,
    /// Whether a person is asked before code that is not read beforehand runs: `make`,
    /// `npm test`, a script of the project. It counts where effects decide.
    pub opaque_asks: bool,
    /// Whether what reaches the network, installs or moves the whole tree is asked about, which
    /// else is ordinary work.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reach_asks: bool,
    /// Whether a person is asked about what others feel for good (a release, a forced push, a
    /// service that they use) and about code from the network that nobody has read. It is no rule
    /// either: with nothing else loaded, what cannot be read is recorded and not asked about.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hazard_asks: bool,
    /// Whether what destroys a home, a disk or the system is refused, whatever else holds. It is no
    /// rule: with nothing else loaded, what cannot be read is recorded and not asked about.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forbids_destruction: bool,
    /// Patterns of paths from the top of the project that no tool writes.
    pub protect: Vec<String>,
    /// The folders of the project, where known; commands start in the first.
    pub roots: Vec<String>,
}

impl EffectPolicy {
    /// `builtin:default`, the policy that is shipped: it judges commands by what they do and has
    /// no prefix rule, so that a command that cannot be read is recorded and not asked about.
    pub fn builtin_default_policy() -> Self {
        Self {
            forbids_destruction: true,
            hazard_asks: true,
            ..Self::default()
        }
    }

    /// Returns whether it restricts nothing.
    pub fn is_effect_policy_unrestricted(&self) -> bool {
        self.unmatched == UnmatchedDecision::Allow
            && self.protect.is_empty()
            && !self.forbids_destruction
            && !self.hazard_asks
    }

    /// Returns whether it may leave a decision to a person.
    pub(crate) fn policy_may_ask_person(&self) -> bool {
        self.unmatched != UnmatchedDecision::Allow || !self.protect.is_empty() || self.hazard_asks
    }
}
