//! A calibration for people.

use std::collections::BTreeMap;

use checkrein_verifiers::judge::calibration::{
    CalibrationResult, CalibrationShortfall, CohenKappa, ConfidenceInterval,
    JudgeStatsForOneAnswerOrder, JudgeVerdictStatistics, MIN_AGREEMENT, MIN_LABELS,
    NoJudgeVerdictReason, PairStatistics, Proportion,
};

use crate::ui::line::Line;
use crate::ui::style::{Paint, counted};

/// Columns of what stands to the left.
const LEFT: usize = 22;
/// Columns of a number in a table.
const CELL: usize = 12;

/// What was found.
pub(super) fn lines(measured: &CalibrationResult) -> Vec<Line> {
    let mut lines = match measured {
        CalibrationResult::Verdicts(verdicts) => of_verdicts(verdicts),
        CalibrationResult::Pairs(pairs) => of_pairs(pairs),
    };
    let lacks = measured.calibration_shortfalls();
    lines.push(match lacks.is_empty() {
        true => Line::painted(Paint::Good, "enough evidence"),
        false => Line::painted(Paint::Warn, "not enough evidence")
            .with(": it stays in shadow (mode = \"shadow\")"),
    });
    let lacks = lacks.iter().map(|lack| format!("  {}", words(*lack)));
    lines.extend(lacks.map(|lack| Line::from(&lack)));
    lines
}

fn words(lack: CalibrationShortfall) -> String {
    match lack {
        CalibrationShortfall::Labels(heard) => {
            let labels = counted(heard, "label");
            format!("{labels} with a verdict; {MIN_LABELS} are needed")
        }
        CalibrationShortfall::Agreement(low) => format!(
            "it may agree as little as {}; {} is needed: try another rubric or another model",
            percent(low),
            percent(MIN_AGREEMENT)
        ),
        CalibrationShortfall::Chance => {
            "it may agree no better than chance would (kappa); labels of both kinds show more"
                .to_owned()
        }
    }
}

fn of_verdicts(verdicts: &JudgeVerdictStatistics) -> Vec<Line> {
    let [passes, fails] = verdicts.label_counts();
    let [said_of_passes, said_of_fails] = &verdicts.table;
    let [silent_passes, silent_fails] = &verdicts.silent;
    let row = |label: &str, said: &[u64; 2], silent: &BTreeMap<NoJudgeVerdictReason, u64>| {
        let [yes, no] = said;
        let silent: u64 = silent.values().sum();
        Line::from(&format!(
            "  {label:<w$}{yes:>CELL$}{no:>CELL$}{silent:>CELL$}",
            w = LEFT - 2
        ))
    };
    let mut lines = vec![
        head(&format!(
            "{}: {passes} pass, {fails} fail",
            counted(passes + fails, "label")
        )),
        Line::from(&format!(
            "{:LEFT$}{:>CELL$}{:>CELL$}{:>CELL$}",
            "", "said pass", "said fail", "no verdict"
        )),
        row("labelled pass", said_of_passes, silent_passes),
        row("labelled fail", said_of_fails, silent_fails),
    ];
    lines.extend(silences(&[silent_passes, silent_fails]));
    lines.push(line("agreement", &share(verdicts.agreement)));
    lines.push(line("kappa", &kappa(verdicts.kappa)));
    lines.push(line("precision of fail", &share(verdicts.precision)));
    lines.push(line("recall of fail", &share(verdicts.recall)));
    if !verdicts.categories.is_empty() {
        lines.push(Line::from("what is wrong, by label, and what was said"));
    }
    for (label, said) in &verdicts.categories {
        let mut said: Vec<_> = said.iter().collect();
        said.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let said = said.iter().map(|(word, count)| format!("{word} {count}"));
        let said = said.collect::<Vec<_>>().join(", ");
        lines.push(line(&format!("  {}", label.as_str()), &said));
    }
    lines
}

fn of_pairs(pairs: &PairStatistics) -> Vec<Line> {
    let mut lines = vec![
        head(&counted(pairs.labels, "labelled pair")),
        line("accuracy", &mean(pairs.pairwise_accuracy())),
    ];
    for (name, order) in [
        ("a shown first", &pairs.a_first),
        ("b shown first", &pairs.b_first),
    ] {
        lines.push(line(&format!("  {name}"), &share(order.right)));
        lines.push(line("    kappa", &kappa(order.kappa)));
    }
    lines.push(line("right in both orders", &share(pairs.right_twice)));
    lines.push(line("same in both orders", &share(pairs.consistent)));
    lines.push(line("  kappa", &kappa(pairs.kappa)));
    let both =
        |of: fn(&JudgeStatsForOneAnswerOrder) -> u64| of(&pairs.a_first) + of(&pairs.b_first);
    let first = both(|order| order.first.hits);
    let heard = both(|order| order.first.of);
    let of = |share: f64| format!("{:>7}  ({first} of {heard} choices)", percent(share));
    let chosen = (heard > 0).then(|| first as f64 / heard as f64);
    lines.push(line("chose the first shown", &chosen.map_or_else(none, of)));
    lines.extend(silences(&[&pairs.a_first.silent, &pairs.b_first.silent]));
    lines
}

fn head(text: &str) -> Line {
    Line::painted(Paint::Strong, text)
}

fn line(left: &str, right: &str) -> Line {
    Line::from(&format!("{left:<LEFT$} {right}"))
}

/// Those that said nothing that counts, by cause.
fn silences(all: &[&BTreeMap<NoJudgeVerdictReason, u64>]) -> Option<Line> {
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
        line(
            "without a verdict",
            &format!("{}; none of them agrees", said.join(", ")),
        )
    })
}

/// `88.3 %  (106 of 120; 81.4 % to 92.9 %)`
fn share(proportion: Proportion) -> String {
    let Proportion { hits, of } = proportion;
    match (proportion.ratio(), proportion.confidence_interval()) {
        (Some(share), Some(ConfidenceInterval { low, high })) => format!(
            "{:>7}  ({hits} of {of}; {} to {})",
            percent(share),
            percent(low),
            percent(high)
        ),
        _ => none(),
    }
}

fn mean(share: Option<f64>) -> String {
    let said = |share| format!("{:>7}  (mean of both orders)", percent(share));
    share.map_or_else(none, said)
}

fn kappa(kappa: Option<CohenKappa>) -> String {
    let Some(kappa) = kappa else { return none() };
    let ConfidenceInterval { low, high } = kappa.kappa_confidence_interval();
    format!("{:>7.2}  ({low:.2} to {high:.2})", kappa.value)
}

fn none() -> String {
    format!("{:>7}", "none")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
