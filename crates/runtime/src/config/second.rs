//! `[veto]` and `[progress]`: a second model beside the agent.

use checkrein_core::policy::{ProgressPolicy, VetoModelPolicy};
use checkrein_verifiers::judge::check_model_name;

use super::document::Document;
use super::file::{ProgressTable, VetoScope, VetoTable};
use super::{ConfigError, permille, small};

pub(super) fn veto(
    at: &Document,
    table: &VetoTable,
) -> Result<Option<VetoModelPolicy>, ConfigError> {
    if !table.enabled {
        return Ok(None);
    }
    Ok(Some(VetoModelPolicy {
        model: model(at, "veto", table.model.as_deref())?,
        all: table.scope == VetoScope::All,
        min_confidence: permille(table.min_confidence),
        max_calls: small(table.max_calls),
    }))
}

pub(super) fn progress(
    at: &Document,
    table: &ProgressTable,
) -> Result<Option<ProgressPolicy>, ConfigError> {
    if !table.enabled {
        return Ok(None);
    }
    Ok(Some(ProgressPolicy {
        model: model(at, "progress", table.model.as_deref())?,
        threshold: permille(table.threshold),
        window: small(table.window),
        max_calls: small(table.max_calls),
    }))
}

fn model(at: &Document, table: &str, given: Option<&str>) -> Result<String, ConfigError> {
    let key = format!("{table}.model");
    let Some(model) = given else {
        let what = "is missing; name a cheap one, such as model = \"anthropic/claude-haiku-4-5\"";
        return Err(at.mistake(&key, what));
    };
    check_model_name(model).map_err(|what| at.mistake(&key, what))?;
    Ok(model.to_owned())
}
