//! `policy test`: what each rules file says, whether its own examples are true, and the digest
//! of it all.

use std::process::ExitCode;

use checkrein_core::digest::Digest;
use checkrein_execpolicy::{
    EffectPolicy, ListedRule, NetworkRule, RuleExample, RuleSet, RulesFileListing,
    RulesListingEntry, compile_and_list_rules,
};
use checkrein_runtime::config::{PolicySourceTexts, TaskDriverKind};
use serde_json::{Value, json};

use super::{rule_decision_name, rule_decision_paint};
use crate::args::PolicyTestArgs;
use crate::locate::{self, CONFIG, ProjectLocation};
use crate::policy_sources;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::style::{TextStyle, count_with_noun};
use crate::{exit_code, ui};

/// As a config names it.
const SHIPPED_POLICY: &str = "builtin:default";

pub(super) fn run_policy_test(args: &PolicyTestArgs) -> Result<ExitCode, CommandError> {
    let here = super::program_path_base_of_current_dir()?;
    let tested = collect_rules_files(args)?;
    let (rules, listings) = compile_and_list_rules(&super::as_str_pairs(&tested.files), &here)?;
    let failing = examples_of_all_rules(&listings)
        .filter(|one| !one.holds)
        .count();
    // What is sealed is more than the files: the config's other keys of [policy].
    let text = match &tested.config {
        Some((located, sources)) if failing == 0 => {
            located
                .compile_policy_sans_local_paths(sources, TaskDriverKind::Hook)?
                .policy
                .rules
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
        ui::print_json(&policy_test_json(&listings, digest, failing));
    } else {
        if tested.shipped {
            ui::print_line_to_stdout(StyledLine::line_from_styled_text(
                TextStyle::Strong,
                SHIPPED_POLICY,
            ));
            ui::print_line_to_stdout("        judges commands by what they do");
        }
        print_rules_listings(&listings, digest, failing);
    }
    Ok(exit_code::to_exit_code(match failing {
        0 => exit_code::YES,
        _ => exit_code::NO,
    }))
}

/// Where the files come from.
struct RulesFilesToTest {
    /// Name and text.
    files: Vec<(String, String)>,
    /// The config that names them, if none was named.
    config: Option<(ProjectLocation, PolicySourceTexts)>,
    /// Whether the config names the policy that is shipped, which has no file.
    shipped: bool,
}

fn collect_rules_files(args: &PolicyTestArgs) -> Result<RulesFilesToTest, CommandError> {
    if !args.rules.is_empty() {
        let files = super::read_rules_files(&args.rules)?;
        return Ok(RulesFilesToTest {
            files,
            config: None,
            shipped: false,
        });
    }
    let located =
        locate::locate_project_with_profile(&std::env::current_dir()?, args.profile.as_deref());
    let sources = policy_sources::effective_policy_sources(&located)?;
    for note in &sources.notes {
        ui::print_wrapped_to_stderr(&format!("checkrein: {note}"));
    }
    let files = located.rules_files_to_compile(&sources.sources)?;
    let policy = located.compile_policy_sans_local_paths(&sources.sources, TaskDriverKind::Hook);
    let sealed = policy.map(|compiled| RuleSet::deserialize_rule_set(&compiled.policy.rules));
    let shipped = matches!(sealed, Ok(Ok(rules)) if rules.asks_person_on_hazardous_commands());
    if files.is_empty() && !shipped {
        return Err(CommandError::usage_error(
            "no rules file is configured here",
            format!(
                "name files with --rules, or in {CONFIG}:\n    [policy]\n    rules = [\"rules/*.rules\"]"
            ),
        ));
    }
    Ok(RulesFilesToTest {
        files,
        config: Some((located, sources.sources)),
        shipped,
    })
}

fn examples_of_all_rules(listings: &[RulesFileListing]) -> impl Iterator<Item = &RuleExample> {
    let entries = listings.iter().flat_map(|file| &file.entries);
    entries.flat_map(|entry| match &entry.rule {
        ListedRule::Prefix { examples, .. } => examples.as_slice(),
        ListedRule::Host { .. } | ListedRule::Network(_) => &[],
    })
}

fn print_rules_listings(listings: &[RulesFileListing], digest: Digest, failing: usize) {
    for file in listings {
        ui::print_line_to_stdout(StyledLine::line_from_styled_text(
            TextStyle::Strong,
            &file.file,
        ));
        for entry in &file.entries {
            for line in rule_listing_lines(entry) {
                ui::print_line_to_stdout(line);
            }
        }
        if file.entries.is_empty() {
            ui::print_line_to_stdout("        nothing");
        }
    }
    let rules: u64 = listings.iter().map(|file| file.entries.len() as u64).sum();
    let tried = examples_of_all_rules(listings).count();
    let verdict = match (tried, failing) {
        (0, _) => StyledLine::from("no examples"),
        (_, 0) => StyledLine::line_from_styled_text(TextStyle::Good, "all hold"),
        (_, failing) => {
            StyledLine::line_from_styled_text(TextStyle::Bad, &format!("{failing} do not hold"))
        }
    };
    let counts = format!(
        "{}, {}: ",
        count_with_noun(rules, "rule"),
        count_with_noun(tried as u64, "example")
    );
    ui::print_line_to_stdout(StyledLine::from(&counts).append_styled_line(verdict));
    ui::print_line_to_stdout(&format!("digest {digest}"));
}

/// A rule, and each of its examples that is not true.
fn rule_listing_lines(entry: &RulesListingEntry) -> Vec<StyledLine> {
    let at = format!("{:>6}  ", entry.line);
    match &entry.rule {
        ListedRule::Prefix {
            pattern,
            decision,
            justification,
            canonical,
            examples,
        } => {
            let decision_word = format!("{:<9}", rule_decision_name(*decision));
            let mut line = StyledLine::from(&at)
                .with_painted_suffix(rule_decision_paint(*decision), &decision_word)
                .with_plain_suffix("  ")
                .with_plain_suffix(&rule_pattern_text(pattern));
            if *canonical {
                line = line.with_plain_suffix(" (in any letter case)");
            }
            if !examples.is_empty() {
                let count = count_with_noun(examples.len() as u64, "example");
                line = line.with_plain_suffix("  ").with_plain_suffix(&count);
            }
            if let Some(why) = justification {
                let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
                line = line.with_painted_suffix(TextStyle::Dim, &format!("  {why}"));
            }
            let wrong = examples.iter().filter(|one| !one.holds).map(|one| {
                let what = match one.matches {
                    true => "does not match, and should",
                    false => "matches, and should not",
                };
                let text = format!("{:>8}✗ {what}: {}", "", one.command);
                StyledLine::line_from_styled_text(TextStyle::Bad, &text)
            });
            std::iter::once(line).chain(wrong).collect()
        }
        ListedRule::Host { name, paths } => {
            let paths = match paths.is_empty() {
                true => "no path".to_owned(),
                false => paths.join(", "),
            };
            vec![StyledLine::from(&format!(
                "{at}{:<9}  {name} may be {paths}",
                "host"
            ))]
        }
        ListedRule::Network(rule) => vec![styled_network_rule_line(&at, rule)],
    }
}

fn styled_network_rule_line(at: &str, rule: &NetworkRule) -> StyledLine {
    let (protocol, host) = (rule.protocol.as_str(), &rule.host);
    StyledLine::from(at)
        .with_painted_suffix(
            rule_decision_paint(rule.decision),
            &format!("{:<9}", rule_decision_name(rule.decision)),
        )
        .with_plain_suffix(&format!("  {protocol} to {host}  "))
        .with_painted_suffix(
            TextStyle::Dim,
            "(for Codex's proxy; commands are not judged by it)",
        )
}

/// `git push|pull`
fn rule_pattern_text(pattern: &[Vec<String>]) -> String {
    let quoted = |word: &String| {
        shlex::try_quote(word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned)
    };
    let positions = pattern.iter().map(|options| {
        let options: Vec<String> = options.iter().map(quoted).collect();
        options.join("|")
    });
    positions.collect::<Vec<_>>().join(" ")
}

fn policy_test_json(listings: &[RulesFileListing], digest: Digest, failing: usize) -> Value {
    let files: Vec<Value> = listings
        .iter()
        .map(|file| {
            let rules: Vec<Value> = file.entries.iter().map(rule_json).collect();
            json!({ "file": file.file, "rules": rules })
        })
        .collect();
    json!({
        "schema": "checkrein/policy-test/1",
        "digest": digest,
        "files": files,
        "examples": examples_of_all_rules(listings).count(),
        "failing": failing,
    })
}

fn rule_json(entry: &RulesListingEntry) -> Value {
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
