//! `policy check`: shows how a command is judged here, with every command that it can run in turn,
//! and why.

use std::process::ExitCode;

use checkrein_core::input::{CommandWithRuleDecision, RuleDecision, ToolRequestFacts};
use checkrein_execpolicy::{
    CodexFormatRuleMatch, MatchedRule, RuleSet, evaluate_argv, evaluate_script,
};
use checkrein_runtime::config::TaskDriverKind;
use serde_json::{Value, json};

use super::{rule_decision_name, rule_decision_paint};
use crate::args::PolicyCheckArgs;
use crate::locate::{self, CONFIG};
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;
use crate::{exit_code, ui};

/// Least columns for a command.
const MIN_COMMAND_COLUMNS: usize = 16;
/// Width if the output is no terminal.
const DEFAULT_WIDTH: usize = 200;

pub(super) fn run_policy_check(args: &PolicyCheckArgs) -> Result<ExitCode, CommandError> {
    let rules = load_rules(args)?;
    let facts = match &args.script {
        Some(script) => evaluate_script(&rules, script),
        None => evaluate_argv(&rules, &args.command),
    };
    let judged: Vec<MatchedCommand<'_>> = facts
        .commands
        .iter()
        .map(|fact| MatchedCommand::match_command_to_rules(fact, &rules))
        .collect();
    if args.json {
        ui::print_json(&policy_check_json(&facts, &judged, args.script.is_some()));
    } else {
        print_policy_check(&facts, &judged);
    }
    Ok(exit_code::to_exit_code(match facts.rule {
        None | Some(RuleDecision::Allow) => exit_code::YES,
        // A question to a person is neither a yes nor a no.
        Some(RuleDecision::Prompt) => exit_code::INCONCLUSIVE,
        Some(RuleDecision::Forbidden) => exit_code::FORBIDDEN,
    }))
}

/// Returns the named rules, or those that a session beginning here is sealed with.
fn load_rules(args: &PolicyCheckArgs) -> Result<RuleSet, CommandError> {
    if !args.rules.is_empty() {
        let files = super::read_rules_files(&args.rules)?;
        let here = super::program_path_base_of_current_dir()?;
        return Ok(checkrein_execpolicy::compile_rules_with_base_folder(
            &super::as_str_pairs(&files),
            &here,
        )?);
    }
    let located =
        locate::locate_project_with_profile(&std::env::current_dir()?, args.profile.as_deref());
    let compiled = located.compile_policy_for_new_session(TaskDriverKind::Hook)?;
    for warning in &compiled.warnings {
        ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
    }
    let rules = RuleSet::deserialize_rule_set(&compiled.policy.rules)
        .map_err(|error| CommandError::cli_failure_error(error.to_string()))?;
    if rules.is_empty() && !rules.asks_person_on_hazardous_commands() {
        ui::print_wrapped_to_stderr(&format!(
            "checkrein: no rules are loaded; name files with --rules, or in {CONFIG}: [policy] rules = [\"rules/*.rules\"]"
        ));
    }
    Ok(rules)
}

/// A command with the rules that match it.
struct MatchedCommand<'f> {
    fact: &'f CommandWithRuleDecision,
    matches: Vec<MatchedRule>,
}

impl<'f> MatchedCommand<'f> {
    fn match_command_to_rules(fact: &'f CommandWithRuleDecision, rules: &RuleSet) -> Self {
        // An unknown word matches no word of a rule, however it is written.
        let matches = match fact.rule {
            None => Vec::new(),
            Some(_) => rules.matching_rules(&fact.argv),
        };
        Self { fact, matches }
    }

    fn to_json(&self) -> Value {
        json!({
            "argv": self.fact.argv,
            "decision": self.fact.rule,
            "matchedRules": self.rule_matches_in_codex_format(),
        })
    }

    /// Returns the matches in the format of Codex.
    fn rule_matches_in_codex_format(&self) -> Vec<CodexFormatRuleMatch<'_>> {
        let program = self.fact.argv.first().map(String::as_str);
        self.matches
            .iter()
            .map(|hit| {
                let bare = hit.matched_prefix.first().map(String::as_str);
                CodexFormatRuleMatch::rule_match_report_from_matched_rule(
                    hit,
                    program.filter(|program| bare != Some(*program)),
                )
            })
            .collect()
    }

    /// Returns the rule that decides: the strictest, and of those the one with the longest prefix.
    fn deciding_rule_match(&self) -> Option<&MatchedRule> {
        let weight = |hit: &&MatchedRule| (hit.decision, hit.matched_prefix.len());
        self.matches.iter().max_by_key(weight)
    }
}

fn policy_check_json(
    facts: &ToolRequestFacts,
    judged: &[MatchedCommand<'_>],
    script: bool,
) -> Value {
    let mut document = json!({
        "schema": "checkrein/policy-check/1",
        "commands": judged.iter().map(MatchedCommand::to_json).collect::<Vec<_>>(),
        "unresolved": facts.unresolved,
        "reason": facts.reason,
    });
    if let Some(fields) = document.as_object_mut() {
        // A plain command is answered in the format of Codex, where no decision is no key.
        if script || facts.rule.is_some() {
            fields.insert("decision".to_owned(), json!(facts.rule));
        }
        if !script {
            let all: Vec<CodexFormatRuleMatch<'_>> = judged
                .iter()
                .flat_map(MatchedCommand::rule_matches_in_codex_format)
                .collect();
            fields.insert("matchedRules".to_owned(), json!(all));
        }
    }
    document
}

fn print_policy_check(facts: &ToolRequestFacts, judged: &[MatchedCommand<'_>]) {
    let verdict = match facts.rule {
        Some(decision) => StyledLine::line_from_styled_text(
            rule_decision_paint(decision),
            rule_decision_name(decision),
        ),
        None => StyledLine::line_from_styled_text(TextStyle::Strong, "no rule says anything"),
    };
    ui::print_line_to_stdout(match &facts.reason {
        Some(reason) => verdict.with_plain_suffix(": ").with_plain_suffix(reason),
        None => verdict,
    });
    // A table of one command without a rule would only repeat the verdict.
    if judged.len() > 1 || judged.iter().any(|one| !one.matches.is_empty()) {
        ui::print_line_to_stdout("");
        for line in styled_command_decision_table(judged, ui::stdout_width()) {
            ui::print_line_to_stdout(line);
        }
    }
    for piece in &facts.unresolved {
        let line = format!(
            "cannot be read beforehand: {}",
            control_chars_to_spaces(piece)
        );
        ui::print_line_to_stdout(StyledLine::line_from_styled_text(TextStyle::Warn, &line));
    }
}

/// Returns the table of commands: the decision, the rule behind it, and its reason.
fn styled_command_decision_table(
    judged: &[MatchedCommand<'_>],
    width: Option<usize>,
) -> Vec<StyledLine> {
    let rows: Vec<[String; 4]> = judged
        .iter()
        .map(|one| {
            let hit = one.deciding_rule_match();
            [
                control_chars_to_spaces(&quote_command_words(&one.fact.argv)),
                one.fact.rule.map_or("-", rule_decision_name).to_owned(),
                hit.map_or_else(String::new, |hit| {
                    control_chars_to_spaces(&quote_command_words(&hit.matched_prefix))
                }),
                hit.and_then(|hit| hit.justification.as_deref())
                    .map_or_else(String::new, control_chars_to_spaces),
            ]
        })
        .collect();
    let heads = ["COMMAND", "ANSWER", "RULE", "WHY"].map(str::to_owned);
    let widest = |column: usize| {
        std::iter::once(&heads)
            .chain(&rows)
            .filter_map(|row| row.get(column))
            .map(|cell| StyledLine::from(cell).line_display_width())
            .max()
            .unwrap_or(0)
    };
    let width = width.unwrap_or(DEFAULT_WIDTH);
    // A prefix gets a quarter of the width at most, so that the reason keeps some room.
    let (answer, rule) = (widest(1), widest(2).min(width / 4));
    // The command gives way first, then the reason.
    let rest = width.saturating_sub(answer + rule + 6);
    let command = widest(0).min((rest / 2).max(MIN_COMMAND_COLUMNS));
    let why = rest.saturating_sub(command);
    let mut lines = Vec::new();
    for (at, row) in std::iter::once(&heads).chain(&rows).enumerate() {
        let decision = at
            .checked_sub(1)
            .and_then(|at| judged.get(at))
            .and_then(|one| one.fact.rule);
        let [command_cell, answer_cell, rule_cell, why_cell] = row;
        let answer_cell = match decision {
            Some(decision) => {
                StyledLine::line_from_styled_text(rule_decision_paint(decision), answer_cell)
            }
            None => StyledLine::from(answer_cell),
        };
        let line = StyledLine::from(command_cell)
            .pad_or_cut_to_width(command)
            .with_plain_suffix("  ")
            .append_styled_line(answer_cell.pad_or_cut_to_width(answer))
            .with_plain_suffix("  ")
            .append_styled_line(StyledLine::from(rule_cell).pad_or_cut_to_width(rule))
            .with_plain_suffix("  ")
            .append_styled_line(StyledLine::from(why_cell).truncated_to_width(why))
            .without_trailing_blanks();
        lines.push(match at {
            0 => StyledLine::line_from_styled_text(TextStyle::Dim, &line.text_without_styling()),
            _ => line,
        });
    }
    lines
}

/// Quotes words as they would be typed; an unknown one (`$X`) stays as it was written.
fn quote_command_words(words: &[String]) -> String {
    let quoted = |word: &String| {
        // shlex would also quote words like `$X`, which are to be shown as they were written.
        let plain = !word.is_empty() && !word.contains([' ', '\t', '\n', '\'', '"', ';', '&', '|']);
        match shlex::try_quote(word) {
            Ok(quoted) if !plain => quoted.into_owned(),
            Ok(_) | Err(_) => word.clone(),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn control_chars_to_spaces(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}
