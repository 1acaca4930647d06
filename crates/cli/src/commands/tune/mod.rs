//! `checkrein tune`: what presets of loop detectors would have done to recorded runs. For each preset it says how
//! many runs would have been halted, how many of those succeeded later, what would have been saved, and how the
//! halted runs did beside others of the same set-up.

mod recorded_runs;
mod run_under_preset;
mod statistics;
mod token_budgets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::policy::Policy;
use checkrein_runtime::config::{self, TaskDriverKind};
use checkrein_verifiers::judge::calibration::ConfidenceInterval;
use serde_json::{Value, json};

use self::recorded_runs::{RecordedRun, TraceFileRunReader};
use self::run_under_preset::{PresetOutcomeForRun, RunUnderPreset};
use self::statistics::PresetReplayStatistics;
use self::token_budgets::{StopsOfTask, TaskSplitter, print_token_budgets};
use crate::args::{HalfOfTaskSet, TuneArgs};
use crate::exit_code;
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::style::count_with_noun;

/// The presets that are compared where none is named.
const PRESETS: &[&str] = &["balanced", "default", "openclaw", "seed"];

pub(crate) fn run_tune_command(args: &TuneArgs) -> Result<ExitCode, CommandError> {
    if let Some(budget) = args.token_budget {
        return tune_token_budgets(args, budget);
    }
    let named: Vec<&str> = args.preset.iter().map(String::as_str).collect();
    let presets = if named.is_empty() { PRESETS } else { &named };
    let policies = presets
        .iter()
        .map(|preset| Ok((*preset, policy_with_detector_preset(preset)?)))
        .collect::<Result<Vec<_>, CommandError>>()?;
    // Files are one set: a session of an agent is a file of its own.
    let replayed = replay_under_presets(&args.files, args.half, &policies)?;
    if replayed.runs == 0 && replayed.left_out == 0 {
        return Err(no_recorded_run_error());
    }
    match args.json {
        true => print_tune_json(&args.files, &replayed),
        false => print_halt_statistics_per_preset(&args.files, &replayed),
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

fn no_recorded_run_error() -> CommandError {
    CommandError::usage_error(
        "no recorded run in these files".to_owned(),
        "it takes traces, transcripts of Claude Code and rollouts of Codex: docs/trace-format.md",
    )
}

/// Returns the name of one file, or how many there are.
fn files_label(files: &[PathBuf]) -> String {
    match files {
        [file] => file
            .file_name()
            .unwrap_or(file.as_os_str())
            .to_string_lossy()
            .into_owned(),
        files => count_with_noun(files.len() as u64, "file"),
    }
}

fn tune_token_budgets(args: &TuneArgs, budget: u64) -> Result<ExitCode, CommandError> {
    let mut by_setup: BTreeMap<String, Vec<StopsOfTask>> = BTreeMap::new();
    for file in &args.files {
        let mut reader = TraceFileRunReader::open_recorded_runs_file(file)?;
        loop {
            let mut splitter = TaskSplitter::default();
            let read = reader.read_next_recorded_run(&mut |_, input| splitter.take_input(input))?;
            let Some(run) = read else { break };
            let is_asked_for = args
                .half
                .is_none_or(|half| half == run.half_containing_task());
            if is_asked_for {
                let tasks = by_setup.entry(run.setup).or_default();
                tasks.extend(splitter.into_tasks(run.success));
            }
        }
    }
    if by_setup.is_empty() {
        return Err(no_recorded_run_error());
    }
    let default = policy_without_config()?.token_budget;
    print_token_budgets(&by_setup, budget, default, args.json);
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Returns the policy that holds where nothing is configured.
fn policy_without_config() -> Result<Policy, CommandError> {
    Ok(config::compile_repo_and_personal_config(None, None, TaskDriverKind::Hook)?.policy)
}

fn policy_with_detector_preset(preset: &str) -> Result<Policy, CommandError> {
    let mut policy = policy_without_config()?;
    policy.loops = config::loop_policy_of_named_preset(Path::new("--preset"), preset)?;
    // Caps would end long runs as well, and this is about detectors.
    policy.caps.tool_calls = None;
    policy.caps.max_iterations = None;
    policy.caps.token_budget = None;
    policy.caps.wall_clock_ms = None;
    Ok(policy)
}

/// The runs of all files under each preset.
struct PresetStatisticsOfTraceFile {
    /// Runs that are counted.
    runs: u64,
    /// Runs of set-ups that never make a second call, in which no detector can find anything.
    left_out: u64,
    by_preset: Vec<(String, PresetReplayStatistics)>,
}

fn replay_under_presets(
    files: &[PathBuf],
    half: Option<HalfOfTaskSet>,
    policies: &[(&str, Policy)],
) -> Result<PresetStatisticsOfTraceFile, CommandError> {
    let mut outcomes: Vec<Vec<PresetOutcomeForRun>> = vec![Vec::new(); policies.len()];
    let mut runs: Vec<RecordedRun> = Vec::new();
    let is_asked_for =
        |run: &RecordedRun| half.is_none_or(|half| half == run.half_containing_task());
    for file in files {
        let mut reader = TraceFileRunReader::open_recorded_runs_file(file)?;
        loop {
            let mut under_presets: Vec<RunUnderPreset<'_>> = policies
                .iter()
                .map(|(_, policy)| RunUnderPreset::new(policy))
                .collect();
            let read = reader.read_next_recorded_run(&mut |run, input| {
                if is_asked_for(run) {
                    under_presets
                        .iter_mut()
                        .for_each(|run| run.step_input(input));
                }
            })?;
            let Some(run) = read else { break };
            if is_asked_for(&run) {
                for (stepped, outcomes) in under_presets.into_iter().zip(&mut outcomes) {
                    outcomes.push(stepped.outcome);
                }
                runs.push(run);
            }
        }
    }
    let mut longest: BTreeMap<&str, u64> = BTreeMap::new();
    for run in &runs {
        let calls = longest.entry(&run.setup).or_default();
        *calls = (*calls).max(run.calls);
    }
    let is_counted: Vec<bool> = runs
        .iter()
        .map(|run| {
            longest
                .get(run.setup.as_str())
                .is_some_and(|calls| *calls > 1)
        })
        .collect();
    let counted = is_counted.iter().filter(|counted| **counted).count() as u64;
    let by_preset = policies.iter().zip(&outcomes).map(|((name, _), outcomes)| {
        let pairs: Vec<(&RecordedRun, &PresetOutcomeForRun)> = runs
            .iter()
            .zip(outcomes)
            .zip(&is_counted)
            .filter_map(|(pair, counted)| counted.then_some(pair))
            .collect();
        (
            (*name).to_owned(),
            PresetReplayStatistics::from_runs(&pairs),
        )
    });
    Ok(PresetStatisticsOfTraceFile {
        runs: counted,
        left_out: runs.len() as u64 - counted,
        by_preset: by_preset.collect(),
    })
}

fn print_halt_statistics_per_preset(files: &[PathBuf], replayed: &PresetStatisticsOfTraceFile) {
    let name = files_label(files);
    let left_out = match replayed.left_out {
        0 => String::new(),
        runs => format!(
            ", {} left out whose set-up never makes a second call",
            count_with_noun(runs, "run")
        ),
    };
    ui::print_line_to_stdout(&format!(
        "{name}: {}{left_out}",
        count_with_noun(replayed.runs, "run")
    ));
    for (preset, found) in &replayed.by_preset {
        ui::print_line_to_stdout(&format!(
            "\n{preset}: {} halted",
            count_with_noun(found.all_halted, "run")
        ));
        let interval = |ends: Option<ConfidenceInterval>, scale: f64| {
            ends.map_or_else(String::new, |ends| {
                format!(" [{:.2}, {:.2}]", ends.low * scale, ends.high * scale)
            })
        };
        let percent = |share: Option<f64>, ends: Option<ConfidenceInterval>| {
            share.map_or_else(dash, |share| {
                format!("{:.2} %{}", share * 100.0, interval(ends, 100.0))
            })
        };
        print_tune_figure(
            "of these, later successful",
            &percent(found.halted.ratio(), found.halted.confidence_interval()),
        );
        print_tune_figure(
            "of all successes, lost",
            &percent(found.lost.ratio(), found.lost_interval),
        );
        print_tune_figure(
            "calls of failed runs, saved",
            &percent(found.saved_share_of_failed_run_calls(), None),
        );
        let words = found.words_per_hundred_calls();
        print_tune_figure(
            "words per 100 calls",
            &words.map_or_else(dash, |words| format!("{words:.1}")),
        );
        let odds = found.odds_ratio.map(|odds| {
            let ends = interval(found.odds_interval, 1.0);
            format!("{odds:.2}{ends}")
        });
        print_tune_figure("odds of success beside peers", &odds.unwrap_or_else(dash));
        if found.unknown > 0 {
            print_tune_figure("ending not known", &count_with_noun(found.unknown, "run"));
        }
        for (detector, did) in &found.detectors {
            let words = count_with_noun(did.words, "word");
            print_tune_figure(
                detector,
                &format!("{words}, {} denied, {} halted", did.denied, did.halted),
            );
        }
    }
    ui::print_line_to_stdout("");
}

fn print_tune_figure(name: &str, figure: &str) {
    ui::print_line_to_stdout(&format!("  {name:<30} {figure}"));
}

fn print_tune_json(files: &[PathBuf], replayed: &PresetStatisticsOfTraceFile) {
    let interval = |found: Option<ConfidenceInterval>| {
        found.map_or(Value::Null, |ends| json!([ends.low, ends.high]))
    };
    let file = match files {
        [file] => Value::from(file.display().to_string()),
        _ => Value::Null,
    };
    for (preset, found) in &replayed.by_preset {
        let detectors: serde_json::Map<String, Value> = found
            .detectors
            .iter()
            .map(|(name, did)| {
                let did = json!({"words": did.words, "denied": did.denied, "halted": did.halted});
                (name.clone(), did)
            })
            .collect();
        ui::print_json(&json!({
            "schema": "checkrein/tune/1",
            "file": file,
            "preset": preset,
            "runs": replayed.runs,
            "left_out": replayed.left_out,
            "halted": found.all_halted,
            "ending_unknown": found.unknown,
            "halted_later_successful": found.halted.hits,
            "halted_later_successful_interval": interval(found.halted.confidence_interval()),
            "successes": found.lost.of,
            "successes_lost_interval": interval(found.lost_interval),
            "calls_of_failed_runs": found.failed_calls,
            "calls_saved": found.saved_calls,
            "tokens_saved": found.saved_tokens,
            "calls": found.calls,
            "words": found.words,
            "odds_ratio": found.odds_ratio,
            "odds_ratio_interval": interval(found.odds_interval),
            "detectors": detectors,
        }));
    }
}

fn dash() -> String {
    "-".to_owned()
}
