//! Compiles `[veto]` and `[progress]`: a second model beside the agent.

use checkrein_core::policy::{ProgressRatingPolicy, VetoModelPolicy};
use checkrein_verifiers::judge::check_model_name;

use super::config_document::ParsedConfigDocument;
use super::config_file::{ProgressConfigTable, VetoCallSelection, VetoConfigTable};
use super::{ConfigError, saturate_u32, to_permille};

pub(super) fn compile_veto_policy(
    at: &ParsedConfigDocument,
    table: &VetoConfigTable,
) -> Result<Option<VetoModelPolicy>, ConfigError> {
    if !table.enabled {
        return Ok(None);
    }
    Ok(Some(VetoModelPolicy {
        model: required_model_name(at, "veto", table.model.as_deref())?,
        all: table.scope == VetoCallSelection::All,
        min_confidence: to_permille(table.min_confidence),
        max_calls: saturate_u32(table.max_calls),
    }))
}

pub(super) fn compile_progress_policy(
    at: &ParsedConfigDocument,
    table: &ProgressConfigTable,
) -> Result<Option<ProgressRatingPolicy>, ConfigError> {
    if !table.enabled {
        return Ok(None);
    }
    Ok(Some(ProgressRatingPolicy {
        model: required_model_name(at, "progress", table.model.as_deref())?,
        threshold: to_permille(table.threshold),
        window: saturate_u32(table.window),
        max_calls: saturate_u32(table.max_calls),
    }))
}

fn required_model_name(
    at: &ParsedConfigDocument,
    table: &str,
    given: Option<&str>,
) -> Result<String, ConfigError> {
    let key = format!("{table}.model");
    let Some(model) = given else {
        let what = "is missing; name a cheap one, such as model = \"anthropic/claude-haiku-4-5\"";
        return Err(at.config_value_mistake(&key, what));
    };
    check_model_name(model).map_err(|what| at.config_value_mistake(&key, what))?;
    Ok(model.to_owned())
}
