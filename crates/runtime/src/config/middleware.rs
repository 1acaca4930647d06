//! `[[middleware]]`: programs that are asked on the way.

use checkrein_core::ids::LayerName;
use checkrein_core::layers::MiddlewareStage;
use checkrein_core::policy::MiddlewareSpec;

use super::ConfigError;
use super::document::Document;
use super::file::{MiddlewareStance, MiddlewareTable};
use crate::layers::TIME;

/// More of them are not asked one after the other.
const MOST: usize = 16;

/// In the order in which they are asked.
pub(super) fn layers(
    at: &Document,
    tables: &[MiddlewareTable],
) -> Result<Vec<MiddlewareSpec>, ConfigError> {
    if tables.len() > MOST {
        let what = format!("is there {} times; {MOST} are the most", tables.len());
        return Err(at.mistake("[[middleware]]", what));
    }
    let layers = tables.iter().map(|table| layer(at, table));
    let mut layers: Vec<MiddlewareSpec> = layers.collect::<Result<_, _>>()?;
    layers.sort_by_key(|layer| layer.order);
    Ok(layers)
}

fn layer(at: &Document, table: &MiddlewareTable) -> Result<MiddlewareSpec, ConfigError> {
    let key = |key: &str| format!("middleware '{}': {key}", table.name);
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if table.name.is_empty() || !table.name.chars().all(word) {
        let what = "must be letters, digits, '_', '-' or '.'".to_owned();
        return Err(at.mistake(&key("name"), what));
    }
    if table.run.trim().is_empty() {
        let what = "is missing; write the command, run = \"python3 tools/cut.py\"".to_owned();
        return Err(at.mistake(&key("run"), what));
    }
    if table.on.is_empty() {
        let all: Vec<&str> = MiddlewareStage::ALL
            .iter()
            .map(|stage| stage.as_str())
            .collect();
        let what = format!(
            "is missing, so it would never be asked; known: {}",
            all.join(", ")
        );
        return Err(at.mistake(&key("on"), what));
    }
    let on = |stage: &MiddlewareStage| table.on.contains(stage);
    Ok(MiddlewareSpec {
        name: LayerName::new(table.name.as_str()),
        run: table.run.clone(),
        on: MiddlewareStage::ALL.iter().copied().filter(on).collect(),
        order: table.order.unwrap_or(0),
        timeout_ms: table.timeout.map_or(
            u64::try_from(TIME.as_millis()).unwrap_or(u64::MAX),
            |span| span.ms,
        ),
        blocks: table.stance != Some(MiddlewareStance::Allow),
    })
}
