//! Arguments against the schema of their tool: many small documents, one schema, the same bounds.

use std::sync::Arc;

use serde_json::Value;

use super::bounded;
use super::budget::Exhausted;
use super::sense;
use super::validator::{self, Compiled};
use super::words::shorten;

/// Questions that one set of arguments may take.
const TO_JUDGE: u64 = 200_000;
/// So many misfits are told, each so long.
const MAX_TOLD: usize = 3;
const MAX_MESSAGE: usize = 160;

/// A tool's schema, compiled.
pub(crate) struct Fitting(Compiled);

impl std::fmt::Debug for Fitting {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Fitting").field(&self.0.schema).finish()
    }
}

impl Fitting {
    /// `None` if the schema asks for nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(name: &str, text: String) -> Result<Option<Self>, String> {
        let name = format!("the schema of '{name}'");
        let compiled = bounded::on_a_deep_stack(move || {
            let schema: Value = serde_json::from_str(&text).unwrap_or_default();
            if sense::asks(&schema) {
                validator::compile(&name, &text, Arc::default()).map(Some)
            } else {
                Ok(None)
            }
        });
        compiled?.map(|compiled| compiled.map(Self))
    }

    /// Whether these arguments fit.
    ///
    /// # Errors
    /// What does not, in words for the agent.
    pub(crate) fn fit(&mut self, arguments: &Value) -> Result<(), String> {
        let Compiled {
            validator, budget, ..
        } = &self.0;
        let tell = || -> Vec<String> {
            let errors = validator.iter_errors(arguments).take(MAX_TOLD);
            errors
                .map(|error| {
                    let place = error.instance_path().as_str().to_owned();
                    let blank = if place.is_empty() { "" } else { ": " };
                    shorten(&format!("{place}{blank}{error}"), MAX_MESSAGE)
                })
                .collect()
        };
        match budget.within(TO_JUDGE, || validator.is_valid(arguments)) {
            Ok(true) => Ok(()),
            Ok(false) => match budget.within(TO_JUDGE, tell) {
                Ok(told) => Err(told.join("; ")),
                Err(Exhausted) => Err("more is wrong than can be listed".to_owned()),
            },
            Err(Exhausted) => Err("they ask more of the schema than can be answered".to_owned()),
        }
    }
}
