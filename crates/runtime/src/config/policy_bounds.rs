//! Compiles `[policy]` apart from its rules files: the policy that is shipped, commands that no
//! rule names, code that is not read, paths that nobody writes. The person's own file can only
//! tighten.

use checkrein_execpolicy::{EffectPolicy, UnmatchedDecision};

use super::ConfigError;
use super::config_document::ParsedConfigDocument;
use super::config_file::{DeserializedConfigFile, OpaqueCodeDecision};

/// The name of the policy that is shipped.
pub(super) const SHIPPED_POLICY: &str = "builtin:default";

/// Merges this config into the bounds that held before.
pub(super) fn tighten_effect_policy_by_config(
    bounds: &mut EffectPolicy,
    at: &ParsedConfigDocument,
    file: &DeserializedConfigFile,
) -> Result<(), ConfigError> {
    let table = &file.policy;
    let mut named = table.rules.iter().flatten();
    let shipped = named.any(|pattern| pattern == SHIPPED_POLICY);
    bounds.unmatched =
        stricter_unmatched_decision(bounds.unmatched, table.unmatched.unwrap_or_default());
    // Only an empty list in the repo's file leaves the shipped prohibitions off. A further file can
    // switch them on, never off.
    bounds.forbids_destruction |= table.rules.as_ref().is_some_and(|rules| !rules.is_empty());
    bounds.hazard_asks |= shipped;
    bounds.opaque_asks |= table.opaque == Some(OpaqueCodeDecision::Prompt);
    for pattern in &table.protect {
        // Paths are judged from the top of the project, so nothing outside of it could ever match.
        let outside =
            pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..");
        if pattern.trim_matches(['/', '.']).is_empty() || outside {
            let what = format!("'{pattern}' is no path below the top of the project");
            return Err(at.config_value_mistake("policy.protect", what));
        }
        // Refused, since a pattern that is taken literally would protect nothing.
        if pattern.contains(['{', '[', '\\', '!']) {
            let what = format!("'{pattern}': only `*`, `?` and `**` stand for anything here");
            return Err(at.config_value_mistake("policy.protect", what));
        }
        if !bounds.protect.contains(pattern) {
            bounds.protect.push(pattern.clone());
        }
    }
    Ok(())
}

fn stricter_unmatched_decision(a: UnmatchedDecision, b: UnmatchedDecision) -> UnmatchedDecision {
    let weight = |unmatched| match unmatched {
        UnmatchedDecision::Allow => 0,
        UnmatchedDecision::ByEffect => 1,
        UnmatchedDecision::Prompt => 2,
    };
    if weight(b) > weight(a) { b } else { a }
}
