//! Parses `GOAL.toml`: what an unattended run is for, by which criteria it is reached, and what it
//! may cost. Criteria are verifiers, written as those of a config; they are required beside what
//! the config requires.

use checkrein_core::accept::AcceptExpr;
use checkrein_core::digest::Digest;
use checkrein_core::policy::{TaskCaps, VerifierSpec};
use serde::Deserialize;
use toml::{Table, Value};

use super::config_document::ParsedConfigDocument;
use super::config_keys::ConfigFileKind;
use super::{
    CompiledPolicy, ConfigError, ConfigWithNamedFiles, NamedConfigText, ProfileRequest,
    TaskDriverKind, compile_gathered_configs, dollars_to_millionths,
};

/// A goal with its criteria and its budget.
#[derive(Debug, Clone)]
pub struct Goal {
    /// What is to be reached.
    pub goal: String,
    /// The model as `provider/model`, if the goal names one.
    pub model: Option<String>,
    /// The digest of the whole file.
    pub digest: Digest,
    document: ParsedConfigDocument,
    criteria: CompiledPolicy,
    budget: GoalBudget,
}

/// The file; the table of keys has checked it.
#[derive(Debug, Deserialize)]
struct ParsedGoalFile {
    #[serde(default)]
    goal: String,
    model: Option<String>,
    #[serde(default)]
    budget: GoalFileBudgetTable,
    #[serde(default)]
    criterion: Vec<toml::Table>,
}

/// `[budget]`
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct GoalFileBudgetTable {
    dollars: Option<f64>,
    seconds: Option<u64>,
    tokens: Option<u64>,
    iterations: Option<u64>,
    tool_calls: Option<u64>,
}

/// The budget. What is set replaces the config's cap.
#[derive(Debug, Clone, Copy, Default)]
struct GoalBudget {
    cost: Option<u64>,
    wall_clock_ms: Option<u64>,
    tokens: Option<u64>,
    iterations: Option<u64>,
    tool_calls: Option<u64>,
}

impl Goal {
    /// Reads a goal.
    ///
    /// # Errors
    /// Returns the first mistake. A goal without a criterion is one, since nobody could ever say
    /// that it is reached.
    pub fn parse_goal(source: &NamedConfigText) -> Result<Self, ConfigError> {
        let document = ParsedConfigDocument::parse_config_document(source, ConfigFileKind::Goal)?;
        let file: ParsedGoalFile =
            document.deserialize_config_table(document.merge_over_base_config(Table::new()))?;
        if file.goal.trim().is_empty() {
            return Err(
                document.config_value_mistake("goal", "is missing; say what is to be reached")
            );
        }
        if file.criterion.is_empty() {
            let what = "is missing: write at least one, as a [[verifier]]; without it nobody could \
                say that the goal is reached";
            return Err(document.config_value_mistake("[[criterion]]", what));
        }
        // The criteria are compiled as the verifiers of a config, so both have the same keys and
        // checks.
        let criteria = file.criterion.into_iter().map(Value::Table).collect();
        let verifiers = Table::from_iter([("verifier".to_owned(), Value::Array(criteria))]);
        // Nobody wrote that text: mistakes are moved to the goal file.
        let relocated = |error| document.relocate_config_mistakes(error, "verifier", "criterion");
        let gathered = ConfigWithNamedFiles::gather_files_named_by_config(NamedConfigText {
            name: source.name.clone(),
            text: verifiers.to_string(),
        })
        .map_err(relocated)?;
        let criteria = compile_gathered_configs(
            Some(&gathered),
            None,
            TaskDriverKind::Run,
            ProfileRequest::Plain,
        )
        .map_err(relocated)?;
        // Advisory criteria are not required, so they cannot tell that a goal is reached.
        if criteria
            .policy
            .accept
            .verifiers_in_accept_expression()
            .is_empty()
        {
            let what = "are all advisory: then nothing says that the goal is reached";
            return Err(document.config_value_mistake("[[criterion]]", what));
        }
        let table = &file.budget;
        Ok(Self {
            digest: Digest::hash_bytes(source.text.as_bytes()),
            goal: file.goal,
            model: file.model,
            budget: GoalBudget {
                cost: table.dollars.map(dollars_to_millionths),
                wall_clock_ms: table.seconds.map(|seconds| seconds.saturating_mul(1000)),
                tokens: table.tokens,
                iterations: table.iterations,
                tool_calls: table.tool_calls,
            },
            document,
            criteria,
        })
    }

    /// The criteria in their order.
    pub fn criteria(&self) -> &[VerifierSpec] {
        &self.criteria.policy.verifiers
    }

    /// Adds the goal to a policy: its criteria are required as well, and its budget holds.
    ///
    /// # Errors
    /// If a criterion has the name of a verifier that is there already.
    pub fn add_goal_to_policy(&self, compiled: &mut CompiledPolicy) -> Result<(), ConfigError> {
        let (policy, own) = (&mut compiled.policy, &self.criteria.policy);
        // Checked before anything is changed. One name for two verifiers would let the one pass for
        // the other.
        for criterion in &own.verifiers {
            if policy.verifier_spec(&criterion.name).is_some() {
                let what = "is the name of a verifier of the config, too; give it another";
                let key = format!("criterion '{}'", criterion.name.as_str());
                return Err(self.document.config_value_mistake(&key, what));
            }
        }
        policy.verifiers.extend(own.verifiers.iter().cloned());
        // Both must hold: what the config requires, and the goal.
        let before = std::mem::replace(&mut policy.accept, AcceptExpr::All(Vec::new()));
        policy.accept = AcceptExpr::All(vec![before, own.accept.clone()]);
        policy.goal = Some(self.goal.clone());
        let GoalBudget {
            cost,
            wall_clock_ms,
            tokens,
            iterations,
            tool_calls,
        } = self.budget;
        let caps = &mut policy.caps;
        *caps = TaskCaps {
            cost: cost.or(caps.cost),
            wall_clock_ms: wall_clock_ms.or(caps.wall_clock_ms),
            token_budget: tokens.or(caps.token_budget),
            max_iterations: iterations.or(caps.max_iterations),
            tool_calls: tool_calls.or(caps.tool_calls),
            ..*caps
        };
        compiled.warnings.extend(self.criteria.warnings.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn read(text: &str) -> Result<Goal, ConfigError> {
        Goal::parse_goal(&NamedConfigText {
            name: PathBuf::from("GOAL.toml"),
            text: text.to_owned(),
        })
    }

    const CRITERION: &str = "[[criterion]]\nname = \"tests\"\nrun = \"cargo test\"\n";

    #[test]
    fn a_goal_is_required_beside_the_config() {
        let text = format!(
            "goal = \"green\"\n[budget]\ndollars = 0.5\nseconds = 60\ntool_calls = 7\n{CRITERION}"
        );
        let goal = read(&text).unwrap();
        let config = NamedConfigText {
            name: PathBuf::from("checkrein.toml"),
            text: "[caps]\ntool_calls = 3\n[[verifier]]\nname = \"lint\"\nrun = \"true\"\n"
                .to_owned(),
        };
        let mut compiled = super::super::compile_repo_and_personal_config(
            Some(&config),
            None,
            TaskDriverKind::Run,
        )
        .unwrap();
        goal.add_goal_to_policy(&mut compiled).unwrap();
        let policy = compiled.policy;
        let names: Vec<String> = policy
            .accept
            .verifiers_in_accept_expression()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["lint", "tests"]);
        let caps = policy.caps;
        assert_eq!(
            (
                caps.cost,
                caps.wall_clock_ms,
                caps.tool_calls,
                caps.max_iterations
            ),
            (Some(500_000), Some(60_000), Some(7), Some(90))
        );
    }

    #[test]
    fn what_is_wrong_with_a_goal_is_told() {
        for (text, told) in [
            ("goal = \"x\"\n".to_owned(), "[[criterion]] is missing"),
            (
                format!("goal = \" \"\n{CRITERION}"),
                "GOAL.toml:1:1: goal is missing",
            ),
            (CRITERION.to_owned(), "goal is missing"),
            (
                format!("goal = \"x\"\nbudgets = 1\n{CRITERION}"),
                "GOAL.toml:2:1: unknown key 'budgets'; did you mean [budget]?",
            ),
            (
                format!("goal = \"x\"\n[budget]\ndollars = 0\n{CRITERION}"),
                "budget.dollars must be more than 0",
            ),
            (
                format!("goal = \"x\"\n[budget]\niterations = -1\n{CRITERION}"),
                "budget.iterations must be 1 or more",
            ),
            (
                format!("goal = \"x\"\n{CRITERION}advisory = true\n"),
                "are all advisory",
            ),
            (
                format!("goal = \"x\"\n{CRITERION}kind = \"magic\"\n"),
                "magic",
            ),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(
                error.contains(told) && error.contains("GOAL.toml"),
                "{text}: {error}"
            );
        }
        let goal = read(&format!("goal = \"x\"\n{CRITERION}")).unwrap();
        let config = NamedConfigText {
            name: PathBuf::from("checkrein.toml"),
            text: "[[verifier]]\nname = \"tests\"\nrun = \"true\"\n".to_owned(),
        };
        let mut compiled = super::super::compile_repo_and_personal_config(
            Some(&config),
            None,
            TaskDriverKind::Run,
        )
        .unwrap();
        let error = goal
            .add_goal_to_policy(&mut compiled)
            .unwrap_err()
            .to_string();
        assert!(error.contains("criterion 'tests'"), "{error}");
    }
}
