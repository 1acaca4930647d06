//! Validates the arguments of tool calls against the schema of their tool: many small documents,
//! one schema, the same bounds as for files.

use std::sync::Arc;

use serde_json::Value;

use super::bounded_run;
use super::budget::ValidationBudgetExhausted;
use super::lint;
use super::messages::shorten_to_one_line;
use super::validator::{self, CompiledSchema};

/// Validation steps for one set of arguments.
const TO_JUDGE: u64 = 200_000;
/// Violations that are reported, and characters of each.
const MAX_TOLD: usize = 3;
const MAX_MESSAGE: usize = 160;

/// A tool's schema, compiled.
pub(crate) struct CompiledToolSchema(CompiledSchema);

impl std::fmt::Debug for CompiledToolSchema {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Fitting").field(&self.0.schema).finish()
    }
}

impl CompiledToolSchema {
    /// Compiles a tool's schema; `None` if it accepts everything.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(name: &str, text: String) -> Result<Option<Self>, String> {
        let name = format!("the schema of '{name}'");
        let compiled = bounded_run::run_on_deep_stack(move || {
            let schema: Value = serde_json::from_str(&text).unwrap_or_default();
            // A schema that accepts everything is an error for a verifier, but common for a tool
            // without parameters.
            if lint::schema_can_reject(&schema) {
                validator::compile_schema(&name, &text, Arc::default()).map(Some)
            } else {
                Ok(None)
            }
        });
        compiled?.map(|compiled| compiled.map(Self))
    }

    /// Checks arguments against the schema.
    ///
    /// # Errors
    /// What does not, in words for the agent.
    pub(crate) fn check_arguments_against_schema(
        &mut self,
        arguments: &Value,
    ) -> Result<(), String> {
        let CompiledSchema {
            validator, budget, ..
        } = &self.0;
        let tell = || -> Vec<String> {
            let errors = validator.iter_errors(arguments).take(MAX_TOLD);
            errors
                .map(|error| {
                    let place = error.instance_path().as_str().to_owned();
                    let blank = if place.is_empty() { "" } else { ": " };
                    shorten_to_one_line(&format!("{place}{blank}{error}"), MAX_MESSAGE)
                })
                .collect()
        };
        // Two passes: most calls fit, and `is_valid` builds no errors.
        match budget.run_with_validation_step_limit(TO_JUDGE, || validator.is_valid(arguments)) {
            Ok(true) => Ok(()),
            Ok(false) => match budget.run_with_validation_step_limit(TO_JUDGE, tell) {
                Ok(told) => Err(told.join("; ")),
                Err(ValidationBudgetExhausted) => {
                    Err("more is wrong than can be listed".to_owned())
                }
            },
            Err(ValidationBudgetExhausted) => {
                Err("they ask more of the schema than can be answered".to_owned())
            }
        }
    }
}
