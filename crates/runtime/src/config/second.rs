//! `[veto]` and `[progress]`: a second model beside the agent.

use std::path::Path;

use checkrein_core::policy::{ProgressTerms, VetoTerms};
use checkrein_verifiers::judge::check_model;

use super::file::{ProgressCheckTable, VetoScope, VetoTable};
use super::{ConfigError, positive, value};

pub(super) fn veto(name: &Path, table: &VetoTable) -> Result<Option<VetoTerms>, ConfigError> {
    let min_confidence = share(name, "veto.min_confidence", table.min_confidence)?;
    let max_calls = count(name, "veto.max_calls", table.max_calls)?;
    if !table.enabled.unwrap_or(false) {
        return Ok(None);
    }
    Ok(Some(VetoTerms {
        model: model(name, "veto", table.model.as_deref())?,
        all: table.scope == Some(VetoScope::All),
        min_confidence: min_confidence.unwrap_or(600),
        max_calls: max_calls.unwrap_or(50),
    }))
}

pub(super) fn progress(
    name: &Path,
    table: &ProgressCheckTable,
) -> Result<Option<ProgressTerms>, ConfigError> {
    let threshold = share(name, "progress.threshold", table.threshold)?;
    let window = count(name, "progress.window", table.window)?;
    let max_calls = count(name, "progress.max_calls", table.max_calls)?;
    if !table.enabled.unwrap_or(false) {
        return Ok(None);
    }
    Ok(Some(ProgressTerms {
        model: model(name, "progress", table.model.as_deref())?,
        threshold: threshold.unwrap_or(400),
        window: window.unwrap_or(3),
        max_calls: max_calls.unwrap_or(30),
    }))
}

fn model(name: &Path, table: &str, given: Option<&str>) -> Result<String, ConfigError> {
    let key = format!("{table}.model");
    let Some(model) = given else {
        let what = "is missing; name a cheap one, such as model = \"anthropic/claude-haiku-4-5\"";
        return Err(value(name, &key, what.to_owned()));
    };
    check_model(model).map_err(|what| value(name, &key, what))?;
    Ok(model.to_owned())
}

/// In thousandths.
fn share(name: &Path, key: &str, given: Option<f64>) -> Result<Option<u32>, ConfigError> {
    match given {
        None => Ok(None),
        Some(share) if (0.0..=1.0).contains(&share) => Ok(Some((share * 1000.0).round() as u32)),
        Some(_) => Err(value(name, key, "must be from 0 to 1".to_owned())),
    }
}

fn count(name: &Path, key: &str, given: Option<i64>) -> Result<Option<u32>, ConfigError> {
    let count = positive(name, key, given)?;
    Ok(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}
