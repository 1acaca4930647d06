//! `policy test`: what each rules file says, whether its own examples are true, and the digest
//! of it all.

use std::process::ExitCode;

use checkrein_core::digest::Digest;
use checkrein_execpolicy::{
    EffectPolicy, ListedRule, ListedRulesFile, NetworkRule, RuleExample, RuleSet,
    RulesListingEntry, compile_and_list_rules,
};
use checkrein_runtime::config::{PolicySources, TaskDriver};
use serde_json::{Value, json};

use super::{paint, word};
use crate::args::PolicyTest;
use crate::locate::{self, CONFIG, Located};
use crate::sources;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::style::{Paint, counted};
use crate::{exit_code, ui};

/// As a config names it.
const SHIPPED: &str = "builtin:default";

pub(super) fn run(args: &PolicyTest) -> Result<ExitCode, CommandError> {
    let here = super::here()?;
    let tested = tested(args)?;
    let (rules, listings) = compile_and_list_rules(&super::borrowed(&tested.files), &here)?;
    let failing = examples(&listings).filter(|one| !one.holds).count();
    // What is sealed is more than the files: the config's other keys of [policy].
    let text = match &tested.config {
        Some((located, sources)) if failing == 0 => {
            located.unguarded(sources, TaskDriver::Hook)?.policy.rules
        }
        Some(_) => rules.rules_to_json(),
        // As a config that names these files and says nothing else.
        None => rules
            .with_effect_policy(EffectPolicy {
                forbids_destruction: true,
                ..EffectPolicy::default()
            })
            .rules_to_json(),
    };
    let digest = Digest::hash_bytes(text.as_bytes());
    if args.json {
        ui::json(&document(&listings, digest, failing));
    } else {
        if tested.shipped {
            ui::answer(Line::painted(Paint::Strong, SHIPPED));
            ui::answer("        judges commands by what they do");
        }
        print(&listings, digest, failing);
    }
    Ok(exit_code::exit(match failing {
        0 => exit_code::YES,
        _ => exit_code::NO,
    }))
}

/// Where the files come from.
struct Tested {
    /// Name and text.
    files: Vec<(String, String)>,
    /// The config that names them, if none was named.
    config: Option<(Located, PolicySources)>,
    /// Whether the config names the policy that is shipped, which has no file.
    shipped: bool,
}

fn tested(args: &PolicyTest) -> Result<Tested, CommandError> {
    if !args.rules.is_empty() {
        let files = super::read_all(&args.rules)?;
        return Ok(Tested {
            files,
            config: None,
            shipped: false,
        });
    }
    let located = locate::locate_under(&std::env::current_dir()?, args.profile.as_deref());
    let sources = sources::in_force(&located)?;
    for note in &sources.notes {
        ui::say(&format!("checkrein: {note}"));
    }
    let files = located.rules_files(&sources.sources)?;
    let policy = located.unguarded(&sources.sources, TaskDriver::Hook);
    let sealed = policy.map(|compiled| RuleSet::deserialize_rule_set(&compiled.policy.rules));
    let shipped = matches!(sealed, Ok(Ok(rules)) if rules.asks_person_on_hazardous_commands());
    if files.is_empty() && !shipped {
        return Err(CommandError::usage(
            "no rules file is configured here",
            format!(
                "name files with --rules, or in {CONFIG}:\n    [policy]\n    rules = [\"rules/*.rules\"]"
            ),
        ));
    }
    Ok(Tested {
        files,
        config: Some((located, sources.sources)),
        shipped,
    })
}

fn examples(listings: &[ListedRulesFile]) -> impl Iterator<Item = &RuleExample> {
    let entries = listings.iter().flat_map(|file| &file.entries);
    entries.flat_map(|entry| match &entry.rule {
        ListedRule::Prefix { examples, .. } => examples.as_slice(),
        ListedRule::Host { .. } | ListedRule::Network(_) => &[],
    })
}

fn print(listings: &[ListedRulesFile], digest: Digest, failing: usize) {
    for file in listings {
        ui::answer(Line::painted(Paint::Strong, &file.file));
        for entry in &file.entries {
            for line in lines(entry) {
                ui::answer(line);
            }
        }
        if file.entries.is_empty() {
            ui::answer("        nothing");
        }
    }
    let rules: u64 = listings.iter().map(|file| file.entries.len() as u64).sum();
    let tried = examples(listings).count();
    let verdict = match (tried, failing) {
        (0, _) => Line::from("no examples"),
        (_, 0) => Line::painted(Paint::Good, "all hold"),
        (_, failing) => Line::painted(Paint::Bad, &format!("{failing} do not hold")),
    };
    let counts = format!(
        "{}, {}: ",
        counted(rules, "rule"),
        counted(tried as u64, "example")
    );
    ui::answer(Line::from(&counts).then(verdict));
    ui::answer(&format!("digest {digest}"));
}

/// A rule, and each of its examples that is not true.
fn lines(entry: &RulesListingEntry) -> Vec<Line> {
    let at = format!("{:>6}  ", entry.line);
    match &entry.rule {
        ListedRule::Prefix {
            pattern,
            decision,
            justification,
            canonical,
            examples,
        } => {
            let decision_word = format!("{:<9}", word(*decision));
            let mut line = Line::from(&at)
                .with_painted(paint(*decision), &decision_word)
                .with("  ")
                .with(&shown(pattern));
            if *canonical {
                line = line.with(" (in any letter case)");
            }
            if !examples.is_empty() {
                let count = counted(examples.len() as u64, "example");
                line = line.with("  ").with(&count);
            }
            if let Some(why) = justification {
                let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
                line = line.with_painted(Paint::Dim, &format!("  {why}"));
            }
            let wrong = examples.iter().filter(|one| !one.holds).map(|one| {
                let what = match one.matches {
                    true => "does not match, and should",
                    false => "matches, and should not",
                };
                let text = format!("{:>8}✗ {what}: {}", "", one.command);
                Line::painted(Paint::Bad, &text)
            });
            std::iter::once(line).chain(wrong).collect()
        }
        ListedRule::Host { name, paths } => {
            let paths = match paths.is_empty() {
                true => "no path".to_owned(),
                false => paths.join(", "),
            };
            vec![Line::from(&format!(
                "{at}{:<9}  {name} may be {paths}",
                "host"
            ))]
        }
        ListedRule::Network(rule) => vec![network(&at, rule)],
    }
}

fn network(at: &str, rule: &NetworkRule) -> Line {
    let (protocol, host) = (rule.protocol.as_str(), &rule.host);
    Line::from(at)
        .with_painted(paint(rule.decision), &format!("{:<9}", word(rule.decision)))
        .with(&format!("  {protocol} to {host}  "))
        .with_painted(
            Paint::Dim,
            "(for Codex's proxy; commands are not judged by it)",
        )
}

/// `git push|pull`
fn shown(pattern: &[Vec<String>]) -> String {
    let quoted = |word: &String| {
        shlex::try_quote(word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned)
    };
    let positions = pattern.iter().map(|options| {
        let options: Vec<String> = options.iter().map(quoted).collect();
        options.join("|")
    });
    positions.collect::<Vec<_>>().join(" ")
}

fn document(listings: &[ListedRulesFile], digest: Digest, failing: usize) -> Value {
    let files: Vec<Value> = listings
        .iter()
        .map(|file| {
            let rules: Vec<Value> = file.entries.iter().map(rule).collect();
            json!({ "file": file.file, "rules": rules })
        })
        .collect();
    json!({
        "schema": "checkrein/policy-test/1",
        "digest": digest,
        "files": files,
        "examples": examples(listings).count(),
        "failing": failing,
    })
}

fn rule(entry: &RulesListingEntry) -> Value {
    match &entry.rule {
        ListedRule::Prefix {
            pattern,
            decision,
            justification,
            canonical,
            examples,
        } => {
            let examples: Vec<Value> = examples
                .iter()
                .map(|one| {
                    json!({ "command": one.command, "matches": one.matches, "holds": one.holds })
                })
                .collect();
            json!({
                "line": entry.line,
                "kind": "prefix_rule",
                "pattern": pattern,
                "decision": decision,
                "justification": justification,
                "canonical_matching": canonical,
                "examples": examples,
            })
        }
        ListedRule::Host { name, paths } => json!({
            "line": entry.line,
            "kind": "host_executable",
            "name": name,
            "paths": paths,
        }),
        ListedRule::Network(rule) => json!({
            "line": entry.line,
            "kind": "network_rule",
            "host": rule.host,
            "protocol": rule.protocol,
            "decision": rule.decision,
            "justification": rule.justification,
        }),
    }
}
