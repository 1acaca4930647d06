//! `checkrein doctor --audit`: which tiers decide anything in this folder, by what, and the exact
//! lines that fill the empty ones. It reads files and runs nothing.
//!
//! What counts: *hard* is something outside the model that judges the claim of done; *soft* is a
//! cap, budget or loop detector; *lazy* is the way in which the model's own word ends the work;
//! *human* is a person who is asked.

mod additions;
mod checkrein_policy;
mod program_scan;
mod settings;
mod text_files;

use std::path::Path;

use checkrein_runtime::config::TaskDriverKind;
use serde::Serialize;

use crate::locate::ProjectLocation;
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;
use additions::AuditSuggestedAddition;

/// Version of the JSON document.
const SCHEMA: &str = "checkrein/audit/1";

/// Explains the tiers to people, within 80 columns.
const TIERS: &str =
    "hard = a check must pass · soft = a limit · lazy = the agent's own word\nhuman = a person";

/// A tier that can end the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StopCriterionTier {
    Hard,
    Soft,
    Lazy,
    Human,
}

impl StopCriterionTier {
    const ALL: [StopCriterionTier; 4] = [
        StopCriterionTier::Hard,
        StopCriterionTier::Soft,
        StopCriterionTier::Lazy,
        StopCriterionTier::Human,
    ];

    fn as_str(self) -> &'static str {
        match self {
            StopCriterionTier::Hard => "hard",
            StopCriterionTier::Soft => "soft",
            StopCriterionTier::Lazy => "lazy",
            StopCriterionTier::Human => "human",
        }
    }
}

/// The kind of set-up that a file brings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AuditedAgentSetupKind {
    /// A loop around a model that has no end of its own.
    BareLoop,
    /// A program that bounds rounds or spending, and nothing else.
    CapsOnly,
    LangGraph,
    ClaudeCode,
    Codex,
    Checkrein,
}

impl AuditedAgentSetupKind {
    fn agent_setup_kind_text(&self) -> &'static str {
        match self {
            AuditedAgentSetupKind::BareLoop => "a bare loop around a model",
            AuditedAgentSetupKind::CapsOnly => "an agent with caps",
            AuditedAgentSetupKind::LangGraph => "a LangGraph agent",
            AuditedAgentSetupKind::ClaudeCode => "Claude Code settings",
            AuditedAgentSetupKind::Codex => "Codex hooks",
            AuditedAgentSetupKind::Checkrein => "checkrein",
        }
    }
}

/// A set-up found in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DiscoveredAgentSetupFile {
    pub(super) kind: AuditedAgentSetupKind,
    /// The file, relative to the folder.
    pub(super) file: String,
}

/// Something that belongs to a tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AuditedStopCriterion {
    pub(super) tier: StopCriterionTier,
    pub(super) what: String,
    /// `file` or `file:line`.
    #[serde(rename = "where")]
    pub(super) place: String,
    /// Whether it fills the tier. Otherwise it is a near miss, and `what` says why.
    pub(super) counts: bool,
}

/// Everything that the audit found.
#[derive(Debug, Default)]
pub(super) struct DoctorAuditReport {
    pub(super) setups: Vec<DiscoveredAgentSetupFile>,
    pub(super) entries: Vec<AuditedStopCriterion>,
    /// Whether hooks of ours get an agent's calls and stops.
    pub(super) has_own_hooks: bool,
    /// Whether a script starts its agent with `checkrein run`.
    pub(super) has_run_script: bool,
    /// The agent that a script starts headless.
    pub(super) headless_agent: Option<AuditedAgentSetupKind>,
}

impl DoctorAuditReport {
    pub(super) fn record_agent_setup_found(&mut self, kind: AuditedAgentSetupKind, file: &str) {
        let setup = DiscoveredAgentSetupFile {
            kind,
            file: file.to_owned(),
        };
        // A file with several signs is one set-up.
        if !self.setups.contains(&setup) {
            self.setups.push(setup);
        }
    }

    pub(super) fn record_satisfied_stop_criterion(
        &mut self,
        tier: StopCriterionTier,
        what: impl Into<String>,
        place: impl Into<String>,
    ) {
        self.add_audit_tier_entry(tier, what, place, true);
    }

    /// Records what is worth naming although it does not fill the tier.
    pub(super) fn add_near_miss_stop_criterion(
        &mut self,
        tier: StopCriterionTier,
        what: impl Into<String>,
        place: impl Into<String>,
    ) {
        self.add_audit_tier_entry(tier, what, place, false);
    }

    fn add_audit_tier_entry(
        &mut self,
        tier: StopCriterionTier,
        what: impl Into<String>,
        place: impl Into<String>,
        counts: bool,
    ) {
        self.entries.push(AuditedStopCriterion {
            tier,
            what: what.into(),
            place: place.into(),
            counts,
        });
    }

    fn has_stop_criterion_of_tier(&self, tier: StopCriterionTier) -> bool {
        self.entries
            .iter()
            .any(|filling| filling.tier == tier && filling.counts)
    }

    fn agent_setups_of_kind(
        &self,
        kind: &AuditedAgentSetupKind,
    ) -> impl Iterator<Item = &DiscoveredAgentSetupFile> {
        self.setups.iter().filter(move |setup| setup.kind == *kind)
    }
}

/// Audits the folder.
///
/// # Errors
/// A config that cannot be used: advice on top of it would be about another config.
pub(super) fn run_and_print_audit(
    located: &ProjectLocation,
    as_json: bool,
) -> Result<(), CommandError> {
    let root = &located.place.root;
    let policy = match located.compile_policy_for_new_session(TaskDriverKind::Hook) {
        Ok(compiled) => compiled.policy,
        Err(error) => {
            return Err(CommandError::cli_failure_error(format!(
                "{error}; mend it first"
            )));
        }
    };
    let mut found = DoctorAuditReport::default();
    // The policy comes last: whether its checks count depends on the hooks and scripts found
    // before.
    settings::audit_agent_settings(root, &mut found);
    program_scan::find_agent_loops_in_code(root, &mut found);
    checkrein_policy::audit_stop_criteria_of_policy(located, &policy, &mut found);
    // Near misses fill no tier.
    let empty: Vec<StopCriterionTier> = StopCriterionTier::ALL
        .into_iter()
        .filter(|tier| !found.has_stop_criterion_of_tier(*tier))
        .collect();
    let additions = additions::suggestions_for_empty_stop_tiers(root, &found, &empty);
    if as_json {
        ui::print_json(&doctor_audit_json(&found, &additions));
    } else {
        print_doctor_audit(root, &found, &empty, &additions);
    }
    Ok(())
}

fn doctor_audit_json(
    found: &DoctorAuditReport,
    additions: &[AuditSuggestedAddition],
) -> serde_json::Value {
    let tiers: Vec<serde_json::Value> = StopCriterionTier::ALL
        .into_iter()
        .map(|tier| {
            let by: Vec<&AuditedStopCriterion> = found
                .entries
                .iter()
                .filter(|filling| filling.tier == tier)
                .collect();
            serde_json::json!({ "tier": tier, "filled": found.has_stop_criterion_of_tier(tier), "by": by })
        })
        .collect();
    serde_json::json!({ "schema": SCHEMA, "setups": found.setups, "tiers": tiers, "add": additions })
}

fn print_doctor_audit(
    root: &Path,
    found: &DoctorAuditReport,
    empty: &[StopCriterionTier],
    additions: &[AuditSuggestedAddition],
) {
    if found.setups.is_empty() {
        ui::print_line_to_stdout(&format!("No agent is set up in {}.", root.display()));
    }
    for setup in &found.setups {
        ui::print_line_to_stdout(&format!(
            "{}: {}",
            setup.file,
            setup.kind.agent_setup_kind_text()
        ));
    }
    ui::print_line_to_stdout("");
    ui::print_output_wrapped(StyledLine::line_from_styled_text(TextStyle::Dim, TIERS), 0);
    let head = format!("{:<6} {:<52} {}", "TIER", "FILLED BY", "WHERE");
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(TextStyle::Dim, &head));
    for tier in StopCriterionTier::ALL {
        let rows: Vec<&AuditedStopCriterion> = found
            .entries
            .iter()
            .filter(|filling| filling.tier == tier)
            .collect();
        let filled = found.has_stop_criterion_of_tier(tier);
        if !filled {
            let name = format!("{:<6} ", tier.as_str());
            ui::print_line_to_stdout(
                StyledLine::from(&name).with_painted_suffix(TextStyle::Bad, "empty"),
            );
        }
        for (at, row) in rows.iter().enumerate() {
            // Near misses of an empty tier stand below the word `empty`, so their rows have no
            // name.
            let name = if at == 0 && filled { tier.as_str() } else { "" };
            let what = format!("{:<52}", row.what);
            let head = StyledLine::from(&format!("{name:<6} "));
            let line = match row.counts {
                true => head.with_plain_suffix(&what),
                false => head.with_painted_suffix(TextStyle::Dim, &what),
            };
            ui::print_output_wrapped(line.with_plain_suffix(" ").with_plain_suffix(&row.place), 7);
        }
    }
    if empty.is_empty() {
        ui::print_line_to_stdout("\nNo tier is empty.");
        return;
    }
    let names: Vec<&str> = empty.iter().map(|tier| tier.as_str()).collect();
    ui::print_line_to_stdout(&format!("\nEmpty: {}. What fills it:", names.join(", ")));
    for addition in additions {
        let tiers: Vec<&str> = addition.tiers.iter().map(|tier| tier.as_str()).collect();
        let head = format!(
            "{} {}",
            addition.how.suggested_edit_verb_phrase(),
            addition.file
        );
        let head = StyledLine::line_from_styled_text(TextStyle::Strong, &head);
        ui::print_line_to_stdout("");
        ui::print_output_wrapped(
            head.with_plain_suffix(&format!(" ({})", tiers.join(", "))),
            2,
        );
        for line in addition.text.lines() {
            ui::print_line_to_stdout(format!("    {line}").trim_end());
        }
        if let Some(then) = &addition.then {
            ui::print_output_wrapped(&format!("  {then}"), 2);
        }
    }
}
