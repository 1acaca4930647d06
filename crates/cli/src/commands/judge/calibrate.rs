//! `judge calibrate`: compares a judge's answers to a file of labelled ones with the labels.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use checkrein_models::ModelError;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_verifiers::judge::calibration::{
    self, CalibrationError, CalibrationModelCallTotals, CalibrationShortfall,
    CalibrationStatistics, JudgeCalibrationContext, JudgeLabelFile, RecordedReplies,
};
use checkrein_verifiers::judge::{JudgeDefinition, JudgeTriggerMode, MainOrSubagentConversation};
use serde_json::{Value, json};

use super::{document, table};
use crate::args::JudgeCalibrateArgs;
use crate::locate::{self, CONFIG};
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::progress::CountProgressBar;
use crate::ui::style::{TextStyle, count_with_noun};
use crate::{exit_code, signals, ui};

/// Bytes of a file that are read.
const MAX_FILE_SIZE: u64 = 1 << 30;
/// The least score that passes, and the time for a question, if no config says otherwise; a judge
/// in a config that says neither has the same.
const MIN_SCORE: u32 = 700;
const QUESTION_TIMEOUT: Duration = Duration::from_secs(30);

const LABEL_FILE_HINT: &str =
    "one JSON object a line; `checkrein judge calibrate --help` shows some";

pub(crate) fn run_judge_calibration(args: &JudgeCalibrateArgs) -> Result<ExitCode, CommandError> {
    signals::install_signal_handlers();
    let name = args.file.display().to_string();
    let mut file = read_label_file(&args.file)?;
    let judge = choose_calibration_judge(args)?;
    // A file with all replies needs no judge and no key.
    let (_, missing) = file.labelled.count_recorded_and_missing_replies();
    let asked = match (&judge, missing) {
        (_, 0) => None,
        (Some(judge), _) => Some(ask_judge_calibration_items(args, judge, &mut file)?),
        (None, missing) => {
            return Err(CommandError::usage_error(
                format!(
                    "{name}: {} not in it, and there is no judge to ask",
                    missing_reply_count_text(missing)
                ),
                format!(
                    "name a model (--model provider/model), or a [[verifier]] of kind \"judge\" in {CONFIG} (--judge NAME)"
                ),
            ));
        }
    };
    // Recorded replies can be measured without a judge, by the default score.
    let min_score = judge.map_or(MIN_SCORE, |judge| judge.definition.min_score);
    let measured = calibration::measure_judge_agreement(&file.labelled, min_score);
    let asked = asked.unwrap_or_default();
    if args.json {
        let asked = judge_usage_json(&asked);
        ui::print_json(&document::calibration_json(
            &name,
            &measured,
            asked,
            &file.warnings,
        ));
    } else {
        for warning in &file.warnings {
            ui::print_wrapped_to_stderr(&format!("checkrein: {name}: {warning}"));
        }
        for line in table::calibration_lines(&measured) {
            ui::print_line_to_stdout(line);
        }
        for line in format_judge_model_usage(&asked) {
            ui::print_wrapped_to_stderr(StyledLine::line_from_styled_text(TextStyle::Dim, &line));
        }
    }
    Ok(exit_code::to_exit_code(calibration_exit_code(&measured)))
}

/// Returns the exit code. Too few labels show nothing either way, which is inconclusive.
fn calibration_exit_code(measured: &CalibrationStatistics) -> u8 {
    let lacks = measured.calibration_shortfalls();
    let few = |lack: &CalibrationShortfall| matches!(lack, CalibrationShortfall::Labels(_));
    match lacks.is_empty() {
        true => exit_code::YES,
        false if lacks.iter().any(few) => exit_code::INCONCLUSIVE,
        false => exit_code::NO,
    }
}

fn read_label_file(path: &Path) -> Result<JudgeLabelFile, CommandError> {
    let name = path.display();
    let unread = |error: std::io::Error| {
        CommandError::usage_error(
            format!("{name}: {error}"),
            format!("name a file of labels: {LABEL_FILE_HINT}"),
        )
    };
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path).map_err(unread)?;
    opened
        .take(MAX_FILE_SIZE)
        .read_to_end(&mut bytes)
        .map_err(unread)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandError::usage_error(
            format!("{name}: not UTF-8 text (byte {at})"),
            LABEL_FILE_HINT,
        )
    })?;
    calibration::parse_label_file(&text)
        .map_err(|unfit| CommandError::usage_error(format!("{name}: {unfit}"), LABEL_FILE_HINT))
}

/// A judge, and how long it may take.
struct JudgeDefinitionWithTimeout {
    definition: JudgeDefinition,
    timeout: Duration,
}

/// Returns the judge that is named, or the only one of the config. `--model` without a name asks
/// that model without a project's rules.
fn choose_calibration_judge(
    args: &JudgeCalibrateArgs,
) -> Result<Option<JudgeDefinitionWithTimeout>, CommandError> {
    if let (None, Some(model)) = (&args.judge, &args.model) {
        checkrein_models::validate_model_name(model)
            .map_err(|error| usage_error_from_model_error(&error))?;
        return Ok(Some(JudgeDefinitionWithTimeout {
            definition: JudgeDefinition {
                model: Some(model.clone()),
                trigger: JudgeTriggerMode::Always,
                keywords: Vec::new(),
                heartbeat: false,
                surfaces: vec![MainOrSubagentConversation::Main],
                min_score: MIN_SCORE,
                rubric: None,
                rules: Vec::new(),
            },
            timeout: QUESTION_TIMEOUT,
        }));
    }
    let located =
        locate::locate_project_with_profile(&std::env::current_dir()?, args.profile.as_deref());
    let compiled = located
        .location_for_new_session()?
        .compile_policy_for_new_session(TaskDriverKind::Hook)?;
    let judges = compiled.policy.verifiers.iter();
    let judges: Vec<_> = judges.filter(|spec| spec.kind == "judge").collect();
    let known = || {
        let names: Vec<&str> = judges.iter().map(|spec| spec.name.as_str()).collect();
        match names.is_empty() {
            true => format!("{CONFIG} has no [[verifier]] of kind \"judge\" here"),
            false => format!("known: {}", names.join(", ")),
        }
    };
    // With several judges and no name, none is guessed.
    let chosen = match (&args.judge, &judges[..]) {
        (None, [only]) => *only,
        (None, _) => return Ok(None),
        (Some(name), all) => match all.iter().find(|spec| spec.name.as_str() == name) {
            Some(spec) => spec,
            None => {
                return Err(CommandError::usage_error(
                    format!("no judge is named '{name}'"),
                    known(),
                ));
            }
        },
    };
    let mut definition: JudgeDefinition =
        serde_json::from_str(&chosen.definition).map_err(|error| {
            CommandError::cli_failure_error(format!("judge '{}': {error}", chosen.name))
        })?;
    if let Some(model) = &args.model {
        checkrein_models::validate_model_name(model)
            .map_err(|error| usage_error_from_model_error(&error))?;
        definition.model = Some(model.clone());
    }
    Ok(Some(JudgeDefinitionWithTimeout {
        definition,
        timeout: Duration::from_millis(chosen.timeout_ms),
    }))
}

fn usage_error_from_model_error(error: &ModelError) -> CommandError {
    CommandError::usage_error(error.to_string(), "--model takes provider/model")
}

fn ask_judge_calibration_items(
    args: &JudgeCalibrateArgs,
    judge: &JudgeDefinitionWithTimeout,
    file: &mut JudgeLabelFile,
) -> Result<CalibrationModelCallTotals, CommandError> {
    let (record, unread) = match &args.record {
        None => Default::default(),
        Some(path) => RecordedReplies::open_or_create_record_file(path).map_err(|error| {
            let what = format!("{}: {error}", path.display());
            CommandError::usage_error(what, "--record names a file that can be written")
        })?,
    };
    if let (Some(path), 1..) = (&args.record, unread) {
        file.warnings.push(format!(
            "{}: {} cannot be read and says nothing",
            path.display(),
            count_with_noun(unread as u64, "line")
        ));
    }
    let env = std::env::vars_os().collect();
    let asking = JudgeCalibrationContext {
        judge: &judge.definition,
        env: &env,
        timeout: judge.timeout,
        cancelled: &signals::CANCELLED,
        // Answers are recorded as they come, so that a cancelled calibration loses none.
        record: &record,
    };
    let shown = CountProgressBar::start_labelled_spinner("asked about");
    let asked = asking.ask_judge_for_missing_replies(&mut file.labelled, &|done, all| {
        shown.show_progress_count(done, all)
    });
    shown.clear_progress_line();
    asked.map_err(|error| match error {
        CalibrationError::Cancelled => {
            CommandError::command_interrupted_error(match &args.record {
                Some(path) => format!("called off; what was answered is in {}", path.display()),
                None => {
                    "called off; with --record FILE nothing that is answered is lost".to_owned()
                }
            })
        }
        // A missing key or a wrong name is the caller's mistake; other failures may be gone the
        // next time.
        CalibrationError::Model(
            error @ (ModelError::NoKey { .. } | ModelError::InvalidName { .. }),
        ) => CommandError::usage_error(error.to_string(), "nothing was measured"),
        CalibrationError::Model(_) | CalibrationError::Record(_) => {
            CommandError::inconclusive_cli_error(error.to_string(), "nothing was measured")
        }
    })
}

/// Says which models were asked, and what that took.
fn format_judge_model_usage(asked: &CalibrationModelCallTotals) -> Vec<String> {
    let mut lines = Vec::new();
    for (model, testimony) in &asked.by_model {
        let tokens =
            |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
        let cost = testimony.cost.map_or("cost unknown".to_owned(), |cost| {
            format!("{:.4} dollars", cost as f64 / 1e6)
        });
        lines.push(format!(
            "{model}: {}, {} tokens read, {} written, {cost}",
            count_with_noun(u64::from(testimony.asked), "question"),
            tokens(testimony.input),
            tokens(testimony.output)
        ));
    }
    if asked.from_record > 0 {
        lines.push(format!(
            "{} answered from the record",
            count_with_noun(asked.from_record, "question")
        ));
    }
    if let Some((why, count)) = &asked.failed {
        lines.push(format!(
            "{} without an answer: {why}",
            count_with_noun(*count, "question")
        ));
    }
    lines
}

fn judge_usage_json(asked: &CalibrationModelCallTotals) -> Value {
    let models = asked.by_model.iter().map(|(model, testimony)| {
        json!({
            "model": model,
            "questions": testimony.asked,
            "input_tokens": testimony.input,
            "output_tokens": testimony.output,
            "cost_microdollars": testimony.cost,
        })
    });
    json!({
        "models": models.collect::<Vec<_>>(),
        "from_record": asked.from_record,
        "unanswered": asked.failed.as_ref().map_or(0, |(_, count)| *count),
        "why_unanswered": asked.failed.as_ref().map(|(why, _)| why),
    })
}

fn missing_reply_count_text(missing: usize) -> String {
    match missing {
        1 => "1 reply is".to_owned(),
        many => format!("{many} replies are"),
    }
}
