//! Renders a calibration for people.

use std::collections::BTreeMap;

use checkrein_verifiers::judge::calibration::{
    CalibrationShortfall, CalibrationStatistics, CohenKappa, ConfidenceInterval,
    JudgeStatsForOneAnswerOrder, JudgeVerdictStatistics, MIN_AGREEMENT, MIN_LABELS,
    NoJudgeVerdictReason, PairStatistics, Proportion,
};

use crate::ui::line::StyledLine;
use crate::ui::style::{TextStyle, count_with_noun};

/// Columns of the labels at the left.
const LABEL_COLUMNS: usize = 22;
/// Columns of a number in a table.
const CELL_COLUMNS: usize = 12;

/// Returns the lines on what was measured.
pub(super) fn calibration_lines(measured: &CalibrationStatistics) -> Vec<StyledLine> {
    let mut lines = match measured {
        CalibrationStatistics::Verdicts(verdicts) => judge_verdict_statistics_lines(verdicts),
        CalibrationStatistics::Pairs(pairs) => judge_pair_statistics_lines(pairs),
    };
    let lacks = measured.calibration_shortfalls();
    lines.push(match lacks.is_empty() {
        true => StyledLine::line_from_styled_text(TextStyle::Good, "enough evidence"),
        false => StyledLine::line_from_styled_text(TextStyle::Warn, "not enough evidence")
            .with_plain_suffix(": it stays in shadow (mode = \"shadow\")"),
    });
    let lacks = lacks
        .iter()
        .map(|lack| format!("  {}", calibration_shortfall_text(*lack)));
    lines.extend(lacks.map(|lack| StyledLine::from(&lack)));
    lines
}

fn calibration_shortfall_text(lack: CalibrationShortfall) -> String {
    match lack {
        CalibrationShortfall::Labels(heard) => {
            let labels = count_with_noun(heard, "label");
            format!("{labels} with a verdict; {MIN_LABELS} are needed")
        }
        CalibrationShortfall::Agreement(low) => format!(
            "it may agree as little as {}; {} is needed: try another rubric or another model",
            percent_text(low),
            percent_text(MIN_AGREEMENT)
        ),
        CalibrationShortfall::Chance => {
            "it may agree no better than chance would (kappa); labels of both kinds show more"
                .to_owned()
        }
    }
}

fn judge_verdict_statistics_lines(verdicts: &JudgeVerdictStatistics) -> Vec<StyledLine> {
    let [passes, fails] = verdicts.label_counts();
    let [said_of_passes, said_of_fails] = &verdicts.table;
    let [silent_passes, silent_fails] = &verdicts.silent;
    let row = |label: &str, said: &[u64; 2], silent: &BTreeMap<NoJudgeVerdictReason, u64>| {
        let [yes, no] = said;
        let silent: u64 = silent.values().sum();
        StyledLine::from(&format!(
            "  {label:<w$}{yes:>CELL_COLUMNS$}{no:>CELL_COLUMNS$}{silent:>CELL_COLUMNS$}",
            w = LABEL_COLUMNS - 2
        ))
    };
    let mut lines = vec![
        styled_table_heading(&format!(
            "{}: {passes} pass, {fails} fail",
            count_with_noun(passes + fails, "label")
        )),
        StyledLine::from(&format!(
            "{:LABEL_COLUMNS$}{:>CELL_COLUMNS$}{:>CELL_COLUMNS$}{:>CELL_COLUMNS$}",
            "", "said pass", "said fail", "no verdict"
        )),
        row("labelled pass", said_of_passes, silent_passes),
        row("labelled fail", said_of_fails, silent_fails),
    ];
    lines.extend(no_verdict_reason_counts_line(&[
        silent_passes,
        silent_fails,
    ]));
    lines.push(labelled_line(
        "agreement",
        &proportion_text(verdicts.agreement),
    ));
    lines.push(labelled_line("kappa", &kappa_text(verdicts.kappa)));
    lines.push(labelled_line(
        "precision of fail",
        &proportion_text(verdicts.precision),
    ));
    lines.push(labelled_line(
        "recall of fail",
        &proportion_text(verdicts.recall),
    ));
    if !verdicts.categories.is_empty() {
        lines.push(StyledLine::from(
            "what is wrong, by label, and what was said",
        ));
    }
    for (label, said) in &verdicts.categories {
        let mut said: Vec<_> = said.iter().collect();
        said.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let said = said.iter().map(|(word, count)| format!("{word} {count}"));
        let said = said.collect::<Vec<_>>().join(", ");
        lines.push(labelled_line(&format!("  {}", label.as_str()), &said));
    }
    lines
}

fn judge_pair_statistics_lines(pairs: &PairStatistics) -> Vec<StyledLine> {
    let mut lines = vec![
        styled_table_heading(&count_with_noun(pairs.labels, "labelled pair")),
        labelled_line("accuracy", &mean_accuracy_text(pairs.pairwise_accuracy())),
    ];
    for (name, order) in [
        ("a shown first", &pairs.a_first),
        ("b shown first", &pairs.b_first),
    ] {
        lines.push(labelled_line(
            &format!("  {name}"),
            &proportion_text(order.right),
        ));
        lines.push(labelled_line("    kappa", &kappa_text(order.kappa)));
    }
    lines.push(labelled_line(
        "right in both orders",
        &proportion_text(pairs.right_twice),
    ));
    lines.push(labelled_line(
        "same in both orders",
        &proportion_text(pairs.consistent),
    ));
    lines.push(labelled_line("  kappa", &kappa_text(pairs.kappa)));
    // Over both orders, a judge without a bias for position chooses the first as often as the
    // second.
    let both =
        |of: fn(&JudgeStatsForOneAnswerOrder) -> u64| of(&pairs.a_first) + of(&pairs.b_first);
    let first = both(|order| order.first.hits);
    let heard = both(|order| order.first.of);
    let of = |share: f64| format!("{:>7}  ({first} of {heard} choices)", percent_text(share));
    let chosen = (heard > 0).then(|| first as f64 / heard as f64);
    lines.push(labelled_line(
        "chose the first shown",
        &chosen.map_or_else(none_table_cell, of),
    ));
    lines.extend(no_verdict_reason_counts_line(&[
        &pairs.a_first.silent,
        &pairs.b_first.silent,
    ]));
    lines
}

fn styled_table_heading(text: &str) -> StyledLine {
    StyledLine::line_from_styled_text(TextStyle::Strong, text)
}

fn labelled_line(left: &str, right: &str) -> StyledLine {
    StyledLine::from(&format!("{left:<LABEL_COLUMNS$} {right}"))
}

/// Returns a line on replies without a verdict, by cause.
fn no_verdict_reason_counts_line(
    all: &[&BTreeMap<NoJudgeVerdictReason, u64>],
) -> Option<StyledLine> {
    let count = |silence: NoJudgeVerdictReason| {
        let counts = all.iter().filter_map(|counts| counts.get(&silence));
        (counts.sum::<u64>(), silence)
    };
    let counts = NoJudgeVerdictReason::ALL.map(count);
    let said: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, silence)| format!("{count} {}", silence.as_str()))
        .collect();
    (!said.is_empty()).then(|| {
        labelled_line(
            "without a verdict",
            &format!("{}; none of them agrees", said.join(", ")),
        )
    })
}

/// Renders a proportion: `88.3 %  (106 of 120; 81.4 % to 92.9 %)`.
fn proportion_text(proportion: Proportion) -> String {
    let Proportion { hits, of } = proportion;
    match (proportion.ratio(), proportion.confidence_interval()) {
        (Some(share), Some(ConfidenceInterval { low, high })) => format!(
            "{:>7}  ({hits} of {of}; {} to {})",
            percent_text(share),
            percent_text(low),
            percent_text(high)
        ),
        _ => none_table_cell(),
    }
}

fn mean_accuracy_text(share: Option<f64>) -> String {
    let said = |share| format!("{:>7}  (mean of both orders)", percent_text(share));
    share.map_or_else(none_table_cell, said)
}

fn kappa_text(kappa: Option<CohenKappa>) -> String {
    let Some(kappa) = kappa else {
        return none_table_cell();
    };
    let ConfidenceInterval { low, high } = kappa.kappa_confidence_interval();
    format!("{:>7.2}  ({low:.2} to {high:.2})", kappa.value)
}

fn none_table_cell() -> String {
    format!("{:>7}", "none")
}

fn percent_text(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
