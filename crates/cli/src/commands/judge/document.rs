//! Renders a calibration as JSON.

use std::collections::BTreeMap;

use checkrein_verifiers::judge::calibration::{
    CalibrationShortfall, CalibrationStatistics, CohenKappa, JudgeStatsForOneAnswerOrder,
    JudgeVerdictStatistics, MIN_AGREEMENT, MIN_LABELS, NoJudgeVerdictReason, PairStatistics,
    Proportion,
};
use serde_json::{Map, Value, json};

/// Returns the document. `asked` says which models were asked now.
pub(super) fn calibration_json(
    file: &str,
    measured: &CalibrationStatistics,
    asked: Value,
    warnings: &[String],
) -> Value {
    let lacks = measured.calibration_shortfalls();
    let (kind, found) = match measured {
        CalibrationStatistics::Verdicts(verdicts) => {
            ("verdicts", verdict_statistics_json(verdicts))
        }
        CalibrationStatistics::Pairs(pairs) => ("pairs", judge_pair_accuracy_json(pairs)),
    };
    json!({
        "schema": "checkrein/judge-calibrate/1",
        "file": file,
        "kind": kind,
        "enough": lacks.is_empty(),
        "lacks": lacks.iter().copied().map(calibration_shortfall_json).collect::<Vec<_>>(),
        "measured": found,
        "asked": asked,
        "warnings": warnings,
    })
}

fn calibration_shortfall_json(lack: CalibrationShortfall) -> Value {
    match lack {
        CalibrationShortfall::Labels(heard) => {
            json!({ "what": "labels", "have": heard, "need": MIN_LABELS })
        }
        CalibrationShortfall::Agreement(low) => {
            json!({ "what": "agreement", "have": low, "need": MIN_AGREEMENT })
        }
        CalibrationShortfall::Chance => json!({ "what": "chance" }),
    }
}

fn verdict_statistics_json(verdicts: &JudgeVerdictStatistics) -> Value {
    let [passes, fails] = verdicts.label_counts();
    let row = |said: &[u64; 2], quiet: &BTreeMap<NoJudgeVerdictReason, u64>| {
        let [yes, no] = said;
        json!({ "pass": yes, "fail": no, "none": judge_no_verdict_counts_json(quiet) })
    };
    let [said_of_passes, said_of_fails] = &verdicts.table;
    let [silent_passes, silent_fails] = &verdicts.silent;
    let categories: Map<String, Value> = verdicts
        .categories
        .iter()
        .map(|(label, said)| (label.as_str().to_owned(), json!(said)))
        .collect();
    json!({
        "labels": { "pass": passes, "fail": fails },
        "said": {
            "pass": row(said_of_passes, silent_passes),
            "fail": row(said_of_fails, silent_fails),
        },
        "agreement": proportion_json(verdicts.agreement),
        "kappa": kappa_json(verdicts.kappa),
        "precision": proportion_json(verdicts.precision),
        "recall": proportion_json(verdicts.recall),
        "categories": categories,
    })
}

fn judge_pair_accuracy_json(pairs: &PairStatistics) -> Value {
    let order = |order: &JudgeStatsForOneAnswerOrder| {
        json!({
            "right": proportion_json(order.right),
            "kappa": kappa_json(order.kappa),
            "chose_first": proportion_json(order.first),
            "none": judge_no_verdict_counts_json(&order.silent),
        })
    };
    json!({
        "labels": pairs.labels,
        "accuracy": pairs.pairwise_accuracy(),
        "ab": order(&pairs.a_first),
        "ba": order(&pairs.b_first),
        "right_in_both": proportion_json(pairs.right_twice),
        "same_in_both": proportion_json(pairs.consistent),
        "none_in_both": pairs.silent_twice,
        "kappa_of_orders": kappa_json(pairs.kappa),
    })
}

fn proportion_json(proportion: Proportion) -> Value {
    let interval = proportion.confidence_interval();
    json!({
        "count": proportion.hits,
        "of": proportion.of,
        "share": proportion.ratio(),
        "low": interval.map(|interval| interval.low),
        "high": interval.map(|interval| interval.high),
    })
}

fn kappa_json(kappa: Option<CohenKappa>) -> Value {
    kappa.map_or(Value::Null, |kappa| {
        let interval = kappa.kappa_confidence_interval();
        json!({
            "value": kappa.value,
            "error": kappa.error,
            "low": interval.low,
            "high": interval.high,
        })
    })
}

fn judge_no_verdict_counts_json(counts: &BTreeMap<NoJudgeVerdictReason, u64>) -> Value {
    // Every reason is listed, also with 0, so that readers need no default.
    let of = |silence: NoJudgeVerdictReason| {
        let count = counts.get(&silence).copied().unwrap_or(0);
        (silence.as_str().to_owned(), json!(count))
    };
    Value::Object(NoJudgeVerdictReason::ALL.map(of).into_iter().collect())
}
