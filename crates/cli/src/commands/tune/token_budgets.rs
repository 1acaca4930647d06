//! `tune --token-budget N`: at which stop token budgets would have ended recorded tasks, what that would
//! have saved, and which of them succeeded later. A task is what follows a prompt; only one that stopped
//! more than once can be ended earlier.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use checkrein_core::budget::{TokenBudgetEnding, token_budget_ending};
use checkrein_core::input::Input;
use checkrein_core::policy::TokenBudgetSettings;
use serde_json::{Value, json};

use crate::ui;
use crate::ui::style::count_with_noun;

/// The values that are tried, in thousandths, tokens and continuations.
const THRESHOLDS: [u32; 3] = [850, 900, 950];
const LITTLE: [u64; 4] = [300, 500, 700, 800];
const CONTINUATIONS: [u32; 3] = [1, 3, 5];
/// Labelled tasks from which on a set-up gets a proposal of its own.
const TASKS_FOR_OWN_PROPOSAL: usize = 100;

/// The stops of one task, and how it ended.
#[derive(Debug, Clone, Default)]
pub(super) struct StopsOfTask {
    /// Output tokens of the task at each stop; `None` if a response told none.
    used: Vec<Option<u64>>,
    /// All its output tokens.
    total: u64,
    is_known: bool,
    pub(super) success: Option<bool>,
}

impl StopsOfTask {
    fn delta(&self, stop: usize) -> Option<u64> {
        let before = match stop.checked_sub(1) {
            None => Some(0),
            Some(before) => self.used.get(before).copied().flatten(),
        };
        Some(
            self.used
                .get(stop)
                .copied()
                .flatten()?
                .saturating_sub(before?),
        )
    }
}

/// Splits a run into its tasks, input by input.
#[derive(Debug, Default)]
pub(super) struct TaskSplitter {
    tasks: Vec<StopsOfTask>,
}

impl TaskSplitter {
    pub(super) fn take_input(&mut self, input: &Input) {
        match input {
            Input::PromptSubmitted(_) => self.tasks.push(StopsOfTask {
                is_known: true,
                ..StopsOfTask::default()
            }),
            Input::RoundEnded(round) => {
                let Some(task) = self.tasks.last_mut() else {
                    return;
                };
                match &round.tokens {
                    Some(tokens) => task.total = task.total.saturating_add(tokens.output),
                    None => task.is_known = false,
                }
            }
            Input::StopRequested(_) => {
                if let Some(task) = self.tasks.last_mut() {
                    task.used.push(task.is_known.then_some(task.total));
                }
            }
            _ => {}
        }
    }

    /// Returns the tasks. How the run ended is known of the last one alone.
    pub(super) fn into_tasks(mut self, success: Option<bool>) -> Vec<StopsOfTask> {
        if let Some(last) = self.tasks.last_mut() {
            last.success = success;
        }
        self.tasks
    }
}

/// A rule for when going on is not worth its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BudgetRule {
    settings: TokenBudgetSettings,
    /// The mean of the last three stops has to be little, not each of the last two.
    by_mean: bool,
}

impl BudgetRule {
    /// Returns the keys of `[token_budget]` that are tried, with their values.
    fn settings_by_key(self) -> [(&'static str, String); 3] {
        let settings = self.settings;
        [
            ("threshold", permille_text(settings.threshold_permille)),
            (
                "diminishing_tokens",
                settings.diminishing_tokens.to_string(),
            ),
            (
                "diminishing_rounds",
                settings.diminishing_rounds.to_string(),
            ),
        ]
    }

    /// Returns how many values differ from those of another rule.
    fn moved_values(self, from: Self) -> usize {
        let pairs = self
            .settings_by_key()
            .into_iter()
            .zip(from.settings_by_key());
        pairs.filter(|(one, other)| one != other).count()
    }

    /// Returns the first stop at which the task would have ended, if it went on behind it.
    fn first_earlier_ending(self, task: &StopsOfTask, budget: u64) -> Option<usize> {
        let behind = task.used.len().checked_sub(1)?;
        (0..behind).find(|stop| self.ends_at_stop(task, *stop, budget))
    }

    fn ends_at_stop(self, task: &StopsOfTask, stop: usize, budget: u64) -> bool {
        let used = task.used.get(stop).copied().flatten();
        let before = stop.checked_sub(1).and_then(|before| task.delta(before));
        let continuations = u32::try_from(stop).unwrap_or(u32::MAX);
        let deltas = [task.delta(stop), before];
        match token_budget_ending(&self.settings, Some(budget), used, deltas, continuations) {
            Some(TokenBudgetEnding::Threshold { .. }) => true,
            ending if !self.by_mean => ending.is_some(),
            _ => {
                let last: Option<Vec<u64>> = (stop.saturating_sub(2)..=stop)
                    .map(|stop| task.delta(stop))
                    .collect();
                continuations >= self.settings.diminishing_rounds
                    && last.is_some_and(|last| {
                        let sum = last
                            .iter()
                            .fold(0_u64, |sum, delta| sum.saturating_add(*delta));
                        sum < self.settings.diminishing_tokens * last.len() as u64
                    })
            }
        }
    }
}

/// What a rule would have done to the tasks of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct BudgetRuleOutcome {
    ended: usize,
    /// Of those whose ending is known: how many succeeded later.
    later_successful: usize,
    ending_known: usize,
    saved_tokens: u64,
}

fn outcome_of_rule(rule: BudgetRule, tasks: &[&StopsOfTask], budget: u64) -> BudgetRuleOutcome {
    let mut outcome = BudgetRuleOutcome::default();
    for task in tasks {
        let Some(stop) = rule.first_earlier_ending(task, budget) else {
            continue;
        };
        outcome.ended += 1;
        outcome.ending_known += usize::from(task.success.is_some());
        outcome.later_successful += usize::from(task.success == Some(true));
        let used = task.used.get(stop).copied().flatten().unwrap_or(task.total);
        let saved = task.total.saturating_sub(used);
        outcome.saved_tokens = outcome.saved_tokens.saturating_add(saved);
    }
    outcome
}

/// Returns every rule that is tried. `default` says what the values leave open.
fn all_rules(default: TokenBudgetSettings) -> impl Iterator<Item = BudgetRule> {
    [false, true].into_iter().flat_map(move |by_mean| {
        THRESHOLDS.into_iter().flat_map(move |threshold_permille| {
            LITTLE.into_iter().flat_map(move |diminishing_tokens| {
                CONTINUATIONS
                    .into_iter()
                    .map(move |diminishing_rounds| BudgetRule {
                        settings: TokenBudgetSettings {
                            threshold_permille,
                            diminishing_tokens,
                            diminishing_rounds,
                            ..default
                        },
                        by_mean,
                    })
            })
        })
    })
}

/// Prints what each rule would have done, and what the counts speak for. `default` are the settings where
/// nothing is configured.
pub(super) fn print_token_budgets(
    by_setup: &BTreeMap<String, Vec<StopsOfTask>>,
    budget: u64,
    default: TokenBudgetSettings,
    as_json: bool,
) {
    let default = BudgetRule {
        settings: default,
        by_mean: false,
    };
    let all: Vec<&StopsOfTask> = by_setup.values().flatten().collect();
    let several: Vec<&StopsOfTask> = all
        .iter()
        .copied()
        .filter(|task| task.used.len() > 1)
        .collect();
    let tokens = all
        .iter()
        .fold(0_u64, |sum, task| sum.saturating_add(task.total));
    if as_json {
        for rule in all_rules(default.settings) {
            ui::print_json(&rule_json(
                rule,
                outcome_of_rule(rule, &several, budget),
                budget,
            ));
        }
        return;
    }
    ui::print_line_to_stdout(&format!(
        "{}, {} of them with more than one stop; {tokens} output tokens; a budget of {budget}",
        count_with_noun(all.len() as u64, "task"),
        several.len()
    ));
    ui::print_line_to_stdout(
        "\nthreshold  tokens  continuations  rule       ended  successful later  tokens saved",
    );
    for rule in all_rules(default.settings) {
        let outcome = outcome_of_rule(rule, &several, budget);
        let mark = if rule == default { "  (default)" } else { "" };
        ui::print_line_to_stdout(&format!(
            "{:<9}  {:<6}  {:<13}  {:<9}  {:>5}  {:>16}  {:>12}{mark}",
            permille_text(rule.settings.threshold_permille),
            rule.settings.diminishing_tokens,
            rule.settings.diminishing_rounds,
            if rule.by_mean {
                "mean of 3"
            } else {
                "last two"
            },
            outcome.ended,
            format!("{} of {}", outcome.later_successful, outcome.ending_known),
            outcome.saved_tokens,
        ));
    }
    print_proposal("all of them", &several, budget, default);
    for (setup, tasks) in by_setup {
        let labelled = tasks.iter().filter(|task| task.success.is_some()).count();
        if labelled >= TASKS_FOR_OWN_PROPOSAL && by_setup.len() > 1 {
            let tasks: Vec<&StopsOfTask> =
                tasks.iter().filter(|task| task.used.len() > 1).collect();
            print_proposal(setup, &tasks, budget, default);
        }
    }
}

/// Prints the rule that saves most and loses no more than the default, as a diff with a sentence for each
/// value. The mean has no setting: it is only compared.
fn print_proposal(of: &str, tasks: &[&StopsOfTask], budget: u64, default: BudgetRule) {
    // A task of which nobody knows how it ended cannot show what an earlier end would have lost.
    let known: Vec<&StopsOfTask> = tasks
        .iter()
        .copied()
        .filter(|task| task.success.is_some())
        .collect();
    let tasks = known.as_slice();
    if tasks.is_empty() {
        ui::print_line_to_stdout(&format!(
            "\nFor {of}: of no task with more than one stop is it known how it ended, so no values are proposed. Lines \"end\" with \"success\" say it: docs/trace-format.md"
        ));
        return;
    }
    let now = outcome_of_rule(default, tasks, budget);
    let best = all_rules(default.settings)
        .filter(|rule| !rule.by_mean)
        .map(|rule| (rule, outcome_of_rule(rule, tasks, budget)))
        .filter(|(_, outcome)| outcome.later_successful <= now.later_successful)
        // Of equals the one that moves least.
        .max_by_key(|(rule, outcome)| (outcome.saved_tokens, Reverse(rule.moved_values(default))));
    let rule = best.map_or(default, |(rule, _)| rule);
    if rule == default {
        ui::print_line_to_stdout(&format!(
            "\nFor {of}: these counts speak for no other values."
        ));
        return;
    }
    ui::print_line_to_stdout(&format!(
        "\nFor {of}, {} with more than one stop and a known ending:\n\n [token_budget]",
        tasks.len()
    ));
    let proposed = rule.settings;
    let one_moved = [
        TokenBudgetSettings {
            threshold_permille: proposed.threshold_permille,
            ..default.settings
        },
        TokenBudgetSettings {
            diminishing_tokens: proposed.diminishing_tokens,
            ..default.settings
        },
        TokenBudgetSettings {
            diminishing_rounds: proposed.diminishing_rounds,
            ..default.settings
        },
    ];
    let values = default
        .settings_by_key()
        .into_iter()
        .zip(rule.settings_by_key());
    for (settings, ((key, old), (_, new))) in one_moved.into_iter().zip(values) {
        if old == new {
            continue;
        }
        let alone = BudgetRule {
            settings,
            by_mean: false,
        };
        let alone = outcome_of_rule(alone, tasks, budget);
        ui::print_line_to_stdout(&format!(
            "-{key} = {old}\n+{key} = {new}  # alone: {} ended where {old} ends {}, {} of {} successful later (now {} of {}), {} tokens saved (now {})",
            alone.ended,
            now.ended,
            alone.later_successful,
            alone.ending_known,
            now.later_successful,
            now.ending_known,
            alone.saved_tokens,
            now.saved_tokens,
        ));
    }
}

fn permille_text(permille: u32) -> String {
    let text = format!("0.{permille:03}");
    text.trim_end_matches('0').to_owned()
}

fn rule_json(rule: BudgetRule, outcome: BudgetRuleOutcome, budget: u64) -> Value {
    json!({
        "schema": "checkrein/tune/1",
        "token_budget": budget,
        "threshold": f64::from(rule.settings.threshold_permille) / 1000.0,
        "diminishing_tokens": rule.settings.diminishing_tokens,
        "diminishing_rounds": rule.settings.diminishing_rounds,
        "by_mean": rule.by_mean,
        "ended": outcome.ended,
        "ending_known": outcome.ending_known,
        "later_successful": outcome.later_successful,
        "tokens_saved": outcome.saved_tokens,
    })
}
