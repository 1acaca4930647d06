//! `policy check`: what would become of a command here, with every command that it can run in
//! turn, and why.

use std::process::ExitCode;

use checkrein_core::input::{CommandWithRuleDecision, RuleDecision, ToolRequestFacts};
use checkrein_execpolicy::{
    CodexFormatRuleMatch, MatchedRule, RuleSet, evaluate_argv, evaluate_script,
};
use checkrein_runtime::config::TaskDriver;
use serde_json::{Value, json};

use super::{paint, word};
use crate::args::PolicyCheck;
use crate::locate::{self, CONFIG};
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::style::Paint;
use crate::{exit_code, ui};

/// A command is shown at least so wide.
const LEAST_COMMAND: usize = 16;
/// Where nobody's terminal says how wide it is.
const WIDE: usize = 200;

pub(super) fn run(args: &PolicyCheck) -> Result<ExitCode, CommandError> {
    let rules = rules(args)?;
    let facts = match &args.script {
        Some(script) => evaluate_script(&rules, script),
        None => evaluate_argv(&rules, &args.command),
    };
    let judged: Vec<Judged<'_>> = facts
        .commands
        .iter()
        .map(|fact| Judged::of(fact, &rules))
        .collect();
    if args.json {
        ui::json(&document(&facts, &judged, args.script.is_some()));
    } else {
        print(&facts, &judged);
    }
    Ok(exit_code::exit(match facts.rule {
        None | Some(RuleDecision::Allow) => exit_code::YES,
        Some(RuleDecision::Prompt) => exit_code::INCONCLUSIVE,
        Some(RuleDecision::Forbidden) => exit_code::FORBIDDEN,
    }))
}

/// Those that were named, else what a session beginning here is sealed with.
fn rules(args: &PolicyCheck) -> Result<RuleSet, CommandError> {
    if !args.rules.is_empty() {
        let files = super::read_all(&args.rules)?;
        let here = super::here()?;
        return Ok(checkrein_execpolicy::compile_rules_with_base_folder(
            &super::borrowed(&files),
            &here,
        )?);
    }
    let located = locate::locate_under(&std::env::current_dir()?, args.profile.as_deref());
    let compiled = located.compile(TaskDriver::Hook)?;
    for warning in &compiled.warnings {
        ui::say(&format!("checkrein: {warning}"));
    }
    let rules = RuleSet::deserialize_rule_set(&compiled.policy.rules)
        .map_err(|error| CommandError::failed(error.to_string()))?;
    if rules.is_empty() && !rules.asks_person_on_hazardous_commands() {
        ui::say(&format!(
            "checkrein: no rules are loaded; name files with --rules, or in {CONFIG}: [policy] rules = [\"rules/*.rules\"]"
        ));
    }
    Ok(rules)
}

/// A command with the rules that hold for it.
struct Judged<'f> {
    fact: &'f CommandWithRuleDecision,
    matches: Vec<MatchedRule>,
}

impl<'f> Judged<'f> {
    fn of(fact: &'f CommandWithRuleDecision, rules: &RuleSet) -> Self {
        // A word that is not known is no word of a rule, however it is written.
        let matches = match fact.rule {
            None => Vec::new(),
            Some(_) => rules.matching_rules(&fact.argv),
        };
        Self { fact, matches }
    }

    fn json(&self) -> Value {
        json!({
            "argv": self.fact.argv,
            "decision": self.fact.rule,
            "matchedRules": self.rules(),
        })
    }

    /// In the shape of Codex.
    fn rules(&self) -> Vec<CodexFormatRuleMatch<'_>> {
        let program = self.fact.argv.first().map(String::as_str);
        self.matches
            .iter()
            .map(|hit| {
                let bare = hit.matched_prefix.first().map(String::as_str);
                CodexFormatRuleMatch::rule_match_report(
                    hit,
                    program.filter(|program| bare != Some(*program)),
                )
            })
            .collect()
    }

    /// The rule that decides.
    fn decisive(&self) -> Option<&MatchedRule> {
        let weight = |hit: &&MatchedRule| (hit.decision, hit.matched_prefix.len());
        self.matches.iter().max_by_key(weight)
    }
}

fn document(facts: &ToolRequestFacts, judged: &[Judged<'_>], script: bool) -> Value {
    let mut document = json!({
        "schema": "checkrein/policy-check/1",
        "commands": judged.iter().map(Judged::json).collect::<Vec<_>>(),
        "unresolved": facts.unresolved,
        "reason": facts.reason,
    });
    if let Some(fields) = document.as_object_mut() {
        // Words are answered in the shape of Codex, where no answer is no key.
        if script || facts.rule.is_some() {
            fields.insert("decision".to_owned(), json!(facts.rule));
        }
        if !script {
            let all: Vec<CodexFormatRuleMatch<'_>> =
                judged.iter().flat_map(Judged::rules).collect();
            fields.insert("matchedRules".to_owned(), json!(all));
        }
    }
    document
}

fn print(facts: &ToolRequestFacts, judged: &[Judged<'_>]) {
    let verdict = match facts.rule {
        Some(decision) => Line::painted(paint(decision), word(decision)),
        None => Line::painted(Paint::Strong, "no rule says anything"),
    };
    ui::answer(match &facts.reason {
        Some(reason) => verdict.with(": ").with(reason),
        None => verdict,
    });
    if judged.len() > 1 || judged.iter().any(|one| !one.matches.is_empty()) {
        ui::answer("");
        for line in table(judged, ui::width()) {
            ui::answer(line);
        }
    }
    for piece in &facts.unresolved {
        let line = format!("cannot be read beforehand: {}", one_line(piece));
        ui::answer(Line::painted(Paint::Warn, &line));
    }
}

/// What each command is answered, by which rule and why.
fn table(judged: &[Judged<'_>], width: Option<usize>) -> Vec<Line> {
    let rows: Vec<[String; 4]> = judged
        .iter()
        .map(|one| {
            let hit = one.decisive();
            [
                one_line(&quoted(&one.fact.argv)),
                one.fact.rule.map_or("-", word).to_owned(),
                hit.map_or_else(String::new, |hit| one_line(&quoted(&hit.matched_prefix))),
                hit.and_then(|hit| hit.justification.as_deref())
                    .map_or_else(String::new, one_line),
            ]
        })
        .collect();
    let heads = ["COMMAND", "ANSWER", "RULE", "WHY"].map(str::to_owned);
    let widest = |column: usize| {
        std::iter::once(&heads)
            .chain(&rows)
            .filter_map(|row| row.get(column))
            .map(|cell| Line::from(cell).columns())
            .max()
            .unwrap_or(0)
    };
    let width = width.unwrap_or(WIDE);
    let (answer, rule) = (widest(1), widest(2).min(width / 4));
    // The command gives way first, then the reason.
    let rest = width.saturating_sub(answer + rule + 6);
    let command = widest(0).min((rest / 2).max(LEAST_COMMAND));
    let why = rest.saturating_sub(command);
    let mut lines = Vec::new();
    for (at, row) in std::iter::once(&heads).chain(&rows).enumerate() {
        let decision = at
            .checked_sub(1)
            .and_then(|at| judged.get(at))
            .and_then(|one| one.fact.rule);
        let [command_cell, answer_cell, rule_cell, why_cell] = row;
        let answer_cell = match decision {
            Some(decision) => Line::painted(paint(decision), answer_cell),
            None => Line::from(answer_cell),
        };
        let line = Line::from(command_cell)
            .padded(command)
            .with("  ")
            .then(answer_cell.padded(answer))
            .with("  ")
            .then(Line::from(rule_cell).padded(rule))
            .with("  ")
            .then(Line::from(why_cell).cut(why))
            .trimmed();
        lines.push(match at {
            0 => Line::painted(Paint::Dim, &line.plain()),
            _ => line,
        });
    }
    lines
}

/// Words as they would be typed; what is not known of one (`$X`) stays as it was written.
fn quoted(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = !word.is_empty() && !word.contains([' ', '\t', '\n', '\'', '"', ';', '&', '|']);
        match shlex::try_quote(word) {
            Ok(quoted) if !plain => quoted.into_owned(),
            Ok(_) | Err(_) => word.clone(),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}
