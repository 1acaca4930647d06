//! A calibration for machines.

use std::collections::BTreeMap;

use checkrein_verifiers::judge::calibration::{
    AGREEMENT, InOrder, Kappa, LABELS, Lack, Measured, Pairs, Proportion, Silence, Verdicts,
};
use serde_json::{Map, Value, json};

/// One document. `asked` says who was asked now.
pub(super) fn document(
    file: &str,
    measured: &Measured,
    asked: Value,
    warnings: &[String],
) -> Value {
    let lacks = measured.lacks();
    let (kind, found) = match measured {
        Measured::Verdicts(verdicts) => ("verdicts", of_verdicts(verdicts)),
        Measured::Pairs(pairs) => ("pairs", of_pairs(pairs)),
    };
    json!({
        "schema": "checkrein/judge-calibrate/1",
        "file": file,
        "kind": kind,
        "enough": lacks.is_empty(),
        "lacks": lacks.iter().copied().map(lack).collect::<Vec<_>>(),
        "measured": found,
        "asked": asked,
        "warnings": warnings,
    })
}

fn lack(lack: Lack) -> Value {
    match lack {
        Lack::Labels(heard) => json!({ "what": "labels", "have": heard, "need": LABELS }),
        Lack::Agreement(low) => json!({ "what": "agreement", "have": low, "need": AGREEMENT }),
        Lack::Chance => json!({ "what": "chance" }),
    }
}

fn of_verdicts(verdicts: &Verdicts) -> Value {
    let [passes, fails] = verdicts.labels();
    let row = |said: &[u64; 2], quiet: &BTreeMap<Silence, u64>| {
        let [yes, no] = said;
        json!({ "pass": yes, "fail": no, "none": silent(quiet) })
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
        "agreement": share(verdicts.agreement),
        "kappa": kappa(verdicts.kappa),
        "precision": share(verdicts.precision),
        "recall": share(verdicts.recall),
        "categories": categories,
    })
}

fn of_pairs(pairs: &Pairs) -> Value {
    let order = |order: &InOrder| {
        json!({
            "right": share(order.right),
            "kappa": kappa(order.kappa),
            "chose_first": share(order.first),
            "none": silent(&order.silent),
        })
    };
    json!({
        "labels": pairs.labels,
        "accuracy": pairs.accuracy(),
        "ab": order(&pairs.forth),
        "ba": order(&pairs.back),
        "right_in_both": share(pairs.right_twice),
        "same_in_both": share(pairs.consistent),
        "none_in_both": pairs.silent_twice,
        "kappa_of_orders": kappa(pairs.kappa),
    })
}

fn share(proportion: Proportion) -> Value {
    let interval = proportion.interval();
    json!({
        "count": proportion.hits,
        "of": proportion.of,
        "share": proportion.share(),
        "low": interval.map(|interval| interval.low),
        "high": interval.map(|interval| interval.high),
    })
}

fn kappa(kappa: Option<Kappa>) -> Value {
    kappa.map_or(Value::Null, |kappa| {
        let interval = kappa.interval();
        json!({
            "value": kappa.value,
            "error": kappa.error,
            "low": interval.low,
            "high": interval.high,
        })
    })
}

fn silent(counts: &BTreeMap<Silence, u64>) -> Value {
    let of = |silence: Silence| {
        let count = counts.get(&silence).copied().unwrap_or(0);
        (silence.as_str().to_owned(), json!(count))
    };
    Value::Object(Silence::ALL.map(of).into_iter().collect())
}
