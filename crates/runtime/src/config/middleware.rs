//! `[[middleware]]`: programs that are asked on the way.

use std::path::Path;

use checkrein_core::ids::LayerName;
use checkrein_core::layers::Stage;
use checkrein_core::policy::LayerSpec;

use super::file::{MiddlewareStance, MiddlewareTable, StageText};
use super::{ConfigError, span, value};
use crate::layers::TIME;

/// More of them are not asked one after the other.
const MOST: usize = 16;
/// Longer one answer does not take.
const LONGEST_MS: u64 = 10 * 60_000;

/// In the order in which they are asked.
pub(super) fn layers(
    name: &Path,
    tables: &[MiddlewareTable],
) -> Result<Vec<LayerSpec>, ConfigError> {
    if tables.len() > MOST {
        let what = format!("is there {} times; {MOST} are the most", tables.len());
        return Err(value(name, "[[middleware]]", what));
    }
    let mut layers: Vec<LayerSpec> = Vec::new();
    for table in tables {
        let layer = layer(name, table)?;
        if layers.iter().any(|known| known.name == layer.name) {
            let what = format!("'{}' is used twice", layer.name);
            return Err(value(name, "middleware.name", what));
        }
        layers.push(layer);
    }
    layers.sort_by_key(|layer| layer.order);
    Ok(layers)
}

fn layer(name: &Path, table: &MiddlewareTable) -> Result<LayerSpec, ConfigError> {
    let key = |key: &str| format!("middleware '{}': {key}", table.name);
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if table.name.is_empty() || !table.name.chars().all(word) {
        let what = "must be letters, digits, '_', '-' or '.'".to_owned();
        return Err(value(name, &key("name"), what));
    }
    if table.run.trim().is_empty() {
        let what = "is empty; write the command, run = \"python3 tools/cut.py\"".to_owned();
        return Err(value(name, &key("run"), what));
    }
    if table.on.is_empty() {
        let all: Vec<&str> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
        let what = format!(
            "is empty, so it would never be asked; known: {}",
            all.join(", ")
        );
        return Err(value(name, &key("on"), what));
    }
    let timeout_ms = span(name, &key("timeout"), table.timeout)?;
    if timeout_ms.is_some_and(|ms| ms > LONGEST_MS) {
        let what = "must be 10m or less: the agent waits for it".to_owned();
        return Err(value(name, &key("timeout"), what));
    }
    let order = i32::try_from(table.order.unwrap_or(0)).map_err(|_| {
        let what = "is too large a number".to_owned();
        value(name, &key("order"), what)
    })?;
    let on = |stage: &Stage| table.on.iter().any(|text| of(*text) == *stage);
    Ok(LayerSpec {
        name: LayerName::new(table.name.as_str()),
        run: table.run.clone(),
        on: Stage::ALL.iter().copied().filter(on).collect(),
        order,
        timeout_ms: timeout_ms.unwrap_or(u64::try_from(TIME.as_millis()).unwrap_or(u64::MAX)),
        blocks: table.stance != Some(MiddlewareStance::Allow),
    })
}

fn of(text: StageText) -> Stage {
    match text {
        StageText::SessionStart => Stage::SessionStart,
        StageText::BeforeTool => Stage::BeforeTool,
        StageText::AfterTool => Stage::AfterTool,
        StageText::PersistResult => Stage::PersistResult,
        StageText::RoundEnd => Stage::RoundEnd,
        StageText::BeforeStop => Stage::BeforeStop,
        StageText::SessionEnd => Stage::SessionEnd,
    }
}
