//! `checkrein doctor --audit`: which of the tiers decide anything in this folder, by what, and
//! the exact lines that fill the empty ones. It reads files and runs nothing.
//!
//! What counts: *hard* is something outside the model that judges the claim of done, *soft* a
//! cap, budget or loop detector, *lazy* the way the model's own word ends the work, *human* a
//! person who is asked.

mod code;
mod lines;
mod ours;
mod settings;
mod walk;

use std::path::Path;

use checkrein_runtime::config::TaskDriver;
use serde::Serialize;

use crate::locate::Located;
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::style::Paint;
use lines::Addition;

/// Version of the JSON document.
const SCHEMA: &str = "checkrein/audit/1";

/// What the tiers are, for people, within 80 columns.
const TIERS: &str =
    "hard = a check must pass · soft = a limit · lazy = the agent's own word\nhuman = a person";

/// One tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tier {
    Hard,
    Soft,
    Lazy,
    Human,
}

impl Tier {
    const ALL: [Tier; 4] = [Tier::Hard, Tier::Soft, Tier::Lazy, Tier::Human];

    fn as_str(self) -> &'static str {
        match self {
            Tier::Hard => "hard",
            Tier::Soft => "soft",
            Tier::Lazy => "lazy",
            Tier::Human => "human",
        }
    }
}

/// What kind of set-up a file makes this folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Asks a model in a loop without an end of its own.
    BareLoop,
    /// Bounds rounds or spending, and nothing else.
    CapsOnly,
    LangGraph,
    ClaudeCode,
    Codex,
    Checkrein,
}

impl Kind {
    fn words(&self) -> &'static str {
        match self {
            Kind::BareLoop => "a bare loop around a model",
            Kind::CapsOnly => "an agent with caps",
            Kind::LangGraph => "a LangGraph agent",
            Kind::ClaudeCode => "Claude Code settings",
            Kind::Codex => "Codex hooks",
            Kind::Checkrein => "checkrein",
        }
    }
}

/// A set-up found in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Setup {
    pub(super) kind: Kind,
    /// Relative to the folder.
    pub(super) file: String,
}

/// Something that belongs to a tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Filling {
    pub(super) tier: Tier,
    pub(super) what: String,
    /// `file` or `file:line`.
    #[serde(rename = "where")]
    pub(super) place: String,
    /// Whether it fills the tier; otherwise it is only near it, and `what` says why.
    pub(super) counts: bool,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) setups: Vec<Setup>,
    pub(super) fillings: Vec<Filling>,
    /// Hooks of ours hand an agent's calls and stops to us.
    pub(super) hooks: bool,
    /// A script starts its agent with `checkrein run`.
    pub(super) run: bool,
    /// A script starts this agent headless.
    pub(super) started: Option<Kind>,
}

impl Found {
    pub(super) fn setup(&mut self, kind: Kind, file: &str) {
        let setup = Setup {
            kind,
            file: file.to_owned(),
        };
        if !self.setups.contains(&setup) {
            self.setups.push(setup);
        }
    }

    pub(super) fn fill(&mut self, tier: Tier, what: impl Into<String>, place: impl Into<String>) {
        self.add(tier, what, place, true);
    }

    /// Worth naming, yet it does not fill the tier.
    pub(super) fn near(&mut self, tier: Tier, what: impl Into<String>, place: impl Into<String>) {
        self.add(tier, what, place, false);
    }

    fn add(&mut self, tier: Tier, what: impl Into<String>, place: impl Into<String>, counts: bool) {
        self.fillings.push(Filling {
            tier,
            what: what.into(),
            place: place.into(),
            counts,
        });
    }

    fn is_filled(&self, tier: Tier) -> bool {
        self.fillings
            .iter()
            .any(|filling| filling.tier == tier && filling.counts)
    }

    fn of(&self, kind: &Kind) -> impl Iterator<Item = &Setup> {
        self.setups.iter().filter(move |setup| setup.kind == *kind)
    }
}

/// Looks through the folder.
///
/// # Errors
/// A config that cannot be used: advice on top of it would be about something else.
pub(super) fn run(located: &Located, as_json: bool) -> Result<(), CommandError> {
    let root = &located.place.root;
    let policy = match located.compile(TaskDriver::Hook) {
        Ok(compiled) => compiled.policy,
        Err(error) => return Err(CommandError::failed(format!("{error}; mend it first"))),
    };
    let mut found = Found::default();
    settings::read(root, &mut found);
    code::read(root, &mut found);
    ours::read(located, &policy, &mut found);
    let empty: Vec<Tier> = Tier::ALL
        .into_iter()
        .filter(|tier| !found.is_filled(*tier))
        .collect();
    let additions = lines::for_empty(root, &found, &empty);
    if as_json {
        ui::json(&document(&found, &additions));
    } else {
        print(root, &found, &empty, &additions);
    }
    Ok(())
}

fn document(found: &Found, additions: &[Addition]) -> serde_json::Value {
    let tiers: Vec<serde_json::Value> = Tier::ALL
        .into_iter()
        .map(|tier| {
            let by: Vec<&Filling> = found
                .fillings
                .iter()
                .filter(|filling| filling.tier == tier)
                .collect();
            serde_json::json!({ "tier": tier, "filled": found.is_filled(tier), "by": by })
        })
        .collect();
    serde_json::json!({ "schema": SCHEMA, "setups": found.setups, "tiers": tiers, "add": additions })
}

fn print(root: &Path, found: &Found, empty: &[Tier], additions: &[Addition]) {
    if found.setups.is_empty() {
        ui::answer(&format!("No agent is set up in {}.", root.display()));
    }
    for setup in &found.setups {
        ui::answer(&format!("{}: {}", setup.file, setup.kind.words()));
    }
    ui::answer("");
    ui::answer_wrapped(Line::painted(Paint::Dim, TIERS), 0);
    let head = format!("{:<6} {:<52} {}", "TIER", "FILLED BY", "WHERE");
    ui::answer(Line::painted(Paint::Dim, &head));
    for tier in Tier::ALL {
        let rows: Vec<&Filling> = found
            .fillings
            .iter()
            .filter(|filling| filling.tier == tier)
            .collect();
        let filled = found.is_filled(tier);
        if !filled {
            let name = format!("{:<6} ", tier.as_str());
            ui::answer(Line::from(&name).with_painted(Paint::Bad, "empty"));
        }
        for (at, row) in rows.iter().enumerate() {
            let name = if at == 0 && filled { tier.as_str() } else { "" };
            let what = format!("{:<52}", row.what);
            let head = Line::from(&format!("{name:<6} "));
            let line = match row.counts {
                true => head.with(&what),
                false => head.with_painted(Paint::Dim, &what),
            };
            ui::answer_wrapped(line.with(" ").with(&row.place), 7);
        }
    }
    if empty.is_empty() {
        ui::answer("\nNo tier is empty.");
        return;
    }
    let names: Vec<&str> = empty.iter().map(|tier| tier.as_str()).collect();
    ui::answer(&format!("\nEmpty: {}. What fills it:", names.join(", ")));
    for addition in additions {
        let tiers: Vec<&str> = addition.tiers.iter().map(|tier| tier.as_str()).collect();
        let head = format!("{} {}", addition.how.words(), addition.file);
        let head = Line::painted(Paint::Strong, &head);
        ui::answer("");
        ui::answer_wrapped(head.with(&format!(" ({})", tiers.join(", "))), 2);
        for line in addition.text.lines() {
            ui::answer(format!("    {line}").trim_end());
        }
        if let Some(then) = &addition.then {
            ui::answer_wrapped(&format!("  {then}"), 2);
        }
    }
}
