//! Compiles `[[middleware]]`: programs that are asked on the way.

use checkrein_core::ids::LayerName;
use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::MiddlewareSpec;

use super::ConfigError;
use super::config_document::ParsedConfigDocument;
use super::config_file::{DetectorProgramTable, MiddlewareConfigTable, MiddlewareFailureStance};
use crate::middleware::{DEFAULT_TIME_LIMIT, DETECTOR_TIME_LIMIT};

/// The most layers: they are asked one after another, while the agent waits.
const MAX_LAYERS: usize = 16;

/// Compiles the layers, in the order in which they are asked.
pub(super) fn compile_middleware_layers(
    at: &ParsedConfigDocument,
    tables: &[MiddlewareConfigTable],
    detectors: &[DetectorProgramTable],
) -> Result<Vec<MiddlewareSpec>, ConfigError> {
    for (list, len) in [
        ("[[middleware]]", tables.len()),
        ("[[detector]]", detectors.len()),
    ] {
        if len > MAX_LAYERS {
            let what = format!("is there {len} times; {MAX_LAYERS} are the most");
            return Err(at.config_value_mistake(list, what));
        }
    }
    let layers = tables
        .iter()
        .map(|table| compile_middleware_layer(at, table));
    let mut layers: Vec<MiddlewareSpec> = layers.collect::<Result<_, _>>()?;
    // The sort is stable: of equal numbers the first of the file comes first.
    layers.sort_by_key(|layer| layer.order);
    // Detectors come last. One that has the name of a layer could not be told from it.
    for detector in detectors {
        let layer = compile_detector(at, detector)?;
        if layers.iter().any(|known| known.name == layer.name) {
            let what = format!(
                "'{}' is the name of another layer or detector",
                detector.name
            );
            return Err(at.config_value_mistake("[[detector]]", what));
        }
        layers.push(layer);
    }
    Ok(layers)
}

fn compile_detector(
    at: &ParsedConfigDocument,
    table: &DetectorProgramTable,
) -> Result<MiddlewareSpec, ConfigError> {
    check_name_and_command(at, "detector", &table.name, &table.run)?;
    Ok(MiddlewareSpec {
        name: LayerName::new(table.name.as_str()),
        run: table.run.clone(),
        on: vec![MiddlewareStage::RoundEnd],
        order: 0,
        timeout_ms: u64::try_from(DETECTOR_TIME_LIMIT.as_millis()).unwrap_or(u64::MAX),
        blocks: false,
    })
}

fn check_name_and_command(
    at: &ParsedConfigDocument,
    list: &str,
    name: &str,
    run: &str,
) -> Result<(), ConfigError> {
    let key = |key: &str| format!("{list} '{name}': {key}");
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(word) {
        let what = "must be letters, digits, '_', '-' or '.'".to_owned();
        return Err(at.config_value_mistake(&key("name"), what));
    }
    if run.trim().is_empty() {
        let what = "is missing; write the command, run = \"python3 tools/cut.py\"".to_owned();
        return Err(at.config_value_mistake(&key("run"), what));
    }
    Ok(())
}

fn compile_middleware_layer(
    at: &ParsedConfigDocument,
    table: &MiddlewareConfigTable,
) -> Result<MiddlewareSpec, ConfigError> {
    let key = |key: &str| format!("middleware '{}': {key}", table.name);
    check_name_and_command(at, "middleware", &table.name, &table.run)?;
    if table.on.is_empty() {
        let all: Vec<&str> = MiddlewareStage::ALL
            .iter()
            .map(|stage| stage.as_str())
            .collect();
        let what = format!(
            "is missing, so it would never be asked; known: {}",
            all.join(", ")
        );
        return Err(at.config_value_mistake(&key("on"), what));
    }
    let on = |stage: &MiddlewareStage| table.on.contains(stage);
    Ok(MiddlewareSpec {
        name: LayerName::new(table.name.as_str()),
        run: table.run.clone(),
        // In the order of the stages, each once, however the file lists them.
        on: MiddlewareStage::ALL.iter().copied().filter(on).collect(),
        order: table.order.unwrap_or(0),
        timeout_ms: table.timeout.map_or(
            u64::try_from(DEFAULT_TIME_LIMIT.as_millis()).unwrap_or(u64::MAX),
            |span| span.ms,
        ),
        blocks: table.stance != Some(MiddlewareFailureStance::Allow),
    })
}
