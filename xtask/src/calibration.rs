//! `calibration FOLDER`: compares what `checkrein judge calibrate` computes from LLMBar's recorded
//! answers with what its authors published. FOLDER is a checkout of princeton-nlp/LLMBar, which is
//! no part of this repository.

#![expect(
    clippy::indexing_slicing,
    reason = "what is not in a JSON value is null"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::build::{self, BuildProfile};

/// Two figures that differ by less are the same.
const NEAR: f64 = 1e-9;

/// Totals over all files.
#[derive(Default)]
struct LlmbarReproductionTotals {
    files: usize,
    answers: u64,
    /// Answers whose text, read by the evaluator's own pattern, says what is recorded.
    read: u64,
    accuracies: usize,
    consistencies: usize,
    kappas: usize,
    /// Files whose kappas cannot be compared: there an answer without a choice counts as output 2.
    kappas_apart: usize,
    differing: Vec<String>,
}

pub(crate) fn compare_with_published_llmbar_figures(
    arguments: &[String],
) -> Result<ExitCode, String> {
    let [folder] = arguments else {
        return Err("needs the folder of a checkout of princeton-nlp/LLMBar".to_owned());
    };
    let folder = Path::new(folder);
    let program = build::build_checkrein_binary(BuildProfile::Dev)?;
    let mut files = Vec::new();
    find_calibration_result_files(&folder.join("Dataset"), &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!(
            "{}: no Dataset with result.json files",
            folder.display()
        ));
    }
    println!(
        "{:<42}{:<27}{:>9}{:>11}{:>9}{:>11}",
        "data set", "evaluator", "accuracy", "published", "agreed", "published"
    );
    let mut sum = LlmbarReproductionTotals::default();
    for file in &files {
        check_calibration_against_llmbar_file(&program, folder, file, &mut sum)
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    println!(
        "\n{} files, {} answers; {} of them have a text, which says what is recorded when it is read by the evaluator's own pattern",
        sum.files, sum.answers, sum.read
    );
    println!(
        "{} of {} accuracies are the published ones, to the count in each order",
        sum.accuracies, sum.files
    );
    println!(
        "{} of {} agreements of the two orders are the published ones, once pairs without any choice are counted as agreeing, as they are there",
        sum.consistencies, sum.files
    );
    println!(
        "{} of {} kappas of the two orders are the published ones; in {} files some answer has no choice, which counts there as output 2 and is left out here",
        sum.kappas,
        sum.files - sum.kappas_apart,
        sum.kappas_apart
    );
    for line in &sum.differing {
        println!("differs: {line}");
    }
    Ok(match sum.differing.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

fn find_calibration_result_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let unread = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.is_dir() {
            find_calibration_result_files(&path, files)?;
        } else if path.file_name().is_some_and(|name| name == "result.json") {
            files.push(path);
        }
    }
    Ok(())
}

fn check_calibration_against_llmbar_file(
    program: &Path,
    folder: &Path,
    file: &Path,
    sum: &mut LlmbarReproductionTotals,
) -> Result<(), String> {
    let strategy = file.parent().ok_or("no folder")?;
    let model = strategy.parent().ok_or("no folder")?;
    let data = model.parent().and_then(Path::parent).ok_or("no folder")?;
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let (Some(strategy_name), Some(model_name)) = (name(strategy), name(model)) else {
        return Err("no evaluator's folder".to_owned());
    };
    let evaluator = format!("{model_name}/{strategy_name}");
    let shown = data.strip_prefix(folder.join("Dataset")).unwrap_or(data);
    let recorded = read_json_file(file)?;
    let set = read_json_file(&data.join("dataset.json"))?;
    let instances = recorded.as_array().ok_or("no list")?;
    let labelled = set.as_array().ok_or("dataset.json: no list")?;
    // A `result.json` repeats the instances that were judged; they must be those of the data set.
    let same = |key: &str| {
        instances
            .iter()
            .map(|one| &one[key])
            .eq(labelled.iter().map(|one| &one[key]))
    };
    if !["input", "output_1", "output_2", "label"]
        .into_iter()
        .all(same)
    {
        sum.differing
            .push(format!("{}: not the data set beside it", file.display()));
    }
    // The evaluator's own config holds the patterns by which LLMBar reads an answer.
    let config = folder
        .join("LLMEvaluator/evaluators/config")
        .join(format!("{evaluator}.json"));
    let stages = read_json_file(&config)?;
    for (at, instance) in instances.iter().enumerate() {
        sum.answers += 2;
        match verify_llmbar_choices_by_replies(instance, &stages) {
            Ok(read) => sum.read += read,
            Err(what) => {
                sum.differing
                    .push(format!("{} instance {}: {what}", file.display(), at + 1))
            }
        }
    }

    // The exit status is not checked: it says whether the judge is good enough, not whether the
    // file was read.
    let out = Command::new(program)
        .args(["judge", "calibrate", "--json"])
        .arg(file)
        .output()
        .map_err(|error| error.to_string())?;
    let ours: Value = serde_json::from_slice(&out.stdout)
        .map_err(|_| String::from_utf8_lossy(&out.stderr).into_owned())?;
    let measured = &ours["measured"];
    let theirs = read_json_file(&strategy.join("statistics.json"))?;
    sum.files += 1;

    // LLMBar counts by order: `correct_False` is the one that is not swapped.
    let right = |order: &str| measured[order]["right"]["count"].as_u64();
    let ours_counts = [
        right("ab"),
        right("ba"),
        measured["right_in_both"]["count"].as_u64(),
    ];
    let published =
        ["correct_False", "correct_True", "correct_both"].map(|key| leading_number(&theirs[key]));
    let accuracy = measured["accuracy"].as_f64().map(|share| share * 100.0);
    let mean = theirs["correct_average"]
        .as_str()
        .and_then(|text| text.trim_end_matches('%').parse::<f64>().ok());
    let mean_is =
        matches!((accuracy, mean), (Some(one), Some(other)) if (one - other).abs() < NEAR);
    match ours_counts == published && mean_is {
        true => sum.accuracies += 1,
        false => sum.differing.push(format!(
            "{}: right {ours_counts:?}, published {published:?}",
            file.display()
        )),
    }
    // A pair without a choice in either order counts as agreeing there and not here, so it is
    // added.
    let agreed = measured["same_in_both"]["count"].as_u64();
    let silent = measured["none_in_both"].as_u64();
    let equal = leading_number(&theirs["equal"]);
    match agreed.zip(silent).map(|(agreed, silent)| agreed + silent) == equal {
        true => sum.consistencies += 1,
        false => sum.differing.push(format!(
            "{}: agreed {agreed:?} and {silent:?}, published {equal:?}",
            file.display()
        )),
    }
    // The kappas differ by definition where an answer has no choice.
    let unread = ["ab", "ba"]
        .iter()
        .any(|order| measured[order]["none"]["unreadable"] != 0);
    let kappas = [
        measured["kappa_of_orders"]["value"].as_f64(),
        theirs["kappa_agreement"].as_f64(),
    ];
    match kappas {
        _ if unread => sum.kappas_apart += 1,
        [Some(ours), Some(theirs)] if (ours - theirs).abs() < NEAR => sum.kappas += 1,
        // Undefined on both sides, as where only one class is used.
        [None, None] => sum.kappas += 1,
        _ => sum.differing.push(format!(
            "{}: kappa of the orders {kappas:?}",
            file.display()
        )),
    }
    let labels = measured["labels"].as_f64().unwrap_or(f64::NAN);
    let percent = |count: Option<u64>| {
        format!(
            "{:.1}",
            count.map_or(f64::NAN, |count| count as f64 * 100.0 / labels)
        )
    };
    println!(
        "{:<42}{evaluator:<27}{:>9}{:>11}{:>9}{:>11}",
        shown.display(),
        format!("{:.1}", accuracy.unwrap_or(f64::NAN)),
        format!("{:.1}", mean.unwrap_or(f64::NAN)),
        percent(agreed),
        percent(equal)
    );
    Ok(())
}

/// Reads the count of a text such as `95 / 100 = 95.0%`.
fn leading_number(text: &Value) -> Option<u64> {
    text.as_str()?.split(' ').next()?.parse().ok()
}

fn read_json_file(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // Python writes this for what is no number, which is not JSON.
    let text = text.replace(": NaN", ": null");
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the texts of the last stage by its patterns and compares them with the recorded choices.
/// Returns the number of texts; an evaluator that rates each output alone has none.
fn verify_llmbar_choices_by_replies(instance: &Value, stages: &Value) -> Result<u64, String> {
    let results = instance["results"].as_array().ok_or("no results")?;
    let last = results.last().ok_or("no results")?;
    // Ratings of single outputs: the choice follows from two numbers, not from a text.
    if last.get("score_1").is_some() {
        return Ok(0);
    }
    let stage = results.len() - 1;
    let patterns = &stages[stage]["parsing"];
    for (order, swapped) in [("swap = False", false), ("swap = True", true)] {
        let text = last[order]["completion"][0].as_str().ok_or("no text")?;
        let mut said = None;
        for winner in ["1", "2"] {
            let pattern = patterns[winner].as_str().ok_or("no pattern")?;
            if said.is_none() && reply_matches_llmbar_pattern(pattern, text.trim())? {
                said = Some(winner);
            }
        }
        // In the swapped order, what the text calls the first is output 2 of the data set.
        let said = said.map(|said| match (said, swapped) {
            ("1", true) => "2",
            ("2", true) => "1",
            (said, _) => said,
        });
        if said != last[order]["winner"].as_str() {
            return Err(format!(
                "{order}: recorded {}, the text says {said:?}",
                last[order]["winner"]
            ));
        }
    }
    Ok(2)
}

/// Matches one of the two forms of pattern that LLMBar's configs have.
fn reply_matches_llmbar_pattern(pattern: &str, text: &str) -> Result<bool, String> {
    let plain = |pattern: &str| pattern.replace('\\', "");
    if let Some(start) = pattern.strip_prefix("(?:^|\\n) ?") {
        let start = plain(start);
        return Ok(text
            .split('\n')
            .any(|line| line.strip_prefix(' ').unwrap_or(line).starts_with(&start)));
    }
    let Some(sentence) = pattern.strip_suffix(" is better.") else {
        return Err(format!("an unknown pattern: {pattern}"));
    };
    // The last `.` of the pattern stands for any character but the end of a line.
    let sentence = plain(sentence) + " is better";
    Ok(text.match_indices(&sentence).any(|(at, found)| {
        let next = text
            .get(at + found.len()..)
            .and_then(|rest| rest.chars().next());
        next.is_some_and(|next| next != '\n')
    }))
}
